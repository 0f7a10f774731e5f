"""A broker process with files that a test changes under it: resource, users, certificates."""

import json
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypedDict

sys.path.insert(0, str(Path(__file__).parents[1] / "interop"))

import brokers
from ports import free_port

from lockkeeper_api.hashes import hash_of_text
from lockkeeper_api.passwords import hashed

HEADER = """\
apiVersion: lockkeeper.dev/v1alpha1
kind: Broker
metadata:
  name: orders
spec:
"""
SECONDS_MAX = 15.0


def eventually(condition: Callable[[], Any], seconds: float = SECONDS_MAX) -> Any:
    """Return what *condition* returns once that is true."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, "it did not come to that in time"
        time.sleep(0.05)
    return found


def replace(path: Path, text: str) -> None:
    """Replace a file at once, as the swap of a link does."""
    fresh = path.with_name(f".{path.name}.new")
    fresh.write_text(text)
    fresh.rename(path)


class Login(TypedDict):
    """Whoever connects, as arguments of `connect`."""

    user: str
    password: str


@dataclass
class Secured:
    """A running broker that has a directory of secrets, in *directory* with all it needs.

    With *listens* false its spec says itself where it listens, at PORT.
    """

    directory: Path
    spec: str
    passwords: dict[str, str] = field(default_factory=dict)
    prepare: Callable[["Secured"], None] | None = None
    listens: bool = True

    def __post_init__(self) -> None:
        self.file, self.secrets = self.directory / "broker.yaml", self.directory / "secrets"
        self.secrets.mkdir(parents=True)
        self.admin_port, self.port = free_port(), free_port()
        self.write_users(self.passwords)
        self.spec = self.spec.replace("PORT", str(self.port))
        self.file.write_text(HEADER + self.spec)
        if self.prepare is not None:
            self.prepare(self)
        command = [*brokers.LOCKKEEPER, "broker", "--data", str(self.directory / "data")]
        if self.listens:
            command += ["--listen", f"openwire://127.0.0.1:{self.port}"]
        command += ["--admin", f"127.0.0.1:{self.admin_port}"]
        command += ["--file", str(self.file), "--secrets", str(self.secrets)]
        self.running = brokers.RunningBroker("lockkeeper", self.port, self.directory, command)
        self.url = self.running.url

    def write_users(self, passwords: dict[str, str]) -> None:
        salt = b"of the tests only"
        lines = (f"{name}:{hashed(password, salt)}\n" for name, password in passwords.items())
        replace(self.secrets / "users", "".join(lines))

    def write_spec(self, spec: str) -> str:
        """Change the mounted file, and return the hash of its text."""
        replace(self.file, HEADER + spec)
        return hash_of_text(HEADER + spec)

    def ask(self, path: str, order: object = None, kind: str = "application/json") -> Any:
        """Return the code and the answer of the admin endpoint."""
        body = None if order is None else json.dumps(order).encode()
        url = f"http://127.0.0.1:{self.admin_port}/api/v1/{path}"
        request = urllib.request.Request(url, body, {"Content-Type": kind})
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)

    def push(self, spec: str, hash: str | None = None) -> Any:
        """Send a configuration as the operator does."""
        text = HEADER + spec
        return self.ask("configuration", {"hash": hash or hash_of_text(text), "text": text})

    def status(self) -> Any:
        return self.ask("status")[1]
