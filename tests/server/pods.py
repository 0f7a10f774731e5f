"""Broker processes as they run in pods: identity by environment, an API server to talk to."""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ports import free_port

LOCKKEEPER = [sys.executable, "-m", "lockkeeper.cli.main"]
NAMESPACE = "shop"
SECONDS_MAX = 90.0
RESOURCE = """\
apiVersion: lockkeeper.dev/v1alpha1
kind: Broker
metadata: {{name: orders, namespace: shop}}
spec:
  listeners: [{{name: openwire, port: {port}}}]
{admin}
{spec}
"""


def wait_until(condition: Callable[[], object], seconds: float = SECONDS_MAX) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not come to that in time"
        time.sleep(0.02)


@dataclass
class Pod:
    """One broker process that believes to be a pod; with *api* it reaches an API server."""

    name: str
    home: Path
    data: Path
    api: str = ""
    port: int = field(default_factory=free_port)
    admin_port: int = field(default_factory=free_port)
    spec: str = ""
    secrets: Path | None = None
    uid: str = ""
    account: Path | None = None
    namespace: str = NAMESPACE
    admin_spec: str = ""
    host: str = "127.0.0.1"
    process: "subprocess.Popen[bytes]" = field(init=False)

    def __post_init__(self) -> None:
        self.uid = self.uid or f"uid-of-{self.name}"
        self.home.mkdir(parents=True, exist_ok=True)
        self.start()

    @property
    def admin(self) -> str:
        return f"http://{self.host}:{self.admin_port}"

    @property
    def log(self) -> Path:
        return self.home / "broker.log"

    def start(self) -> None:
        resource = self.home / "broker.yaml"
        admin = self.admin_spec or f"  admin: {{port: {self.admin_port}}}"
        resource.write_text(RESOURCE.format(port=self.port, admin=admin, spec=self.spec))
        command = [*LOCKKEEPER, "broker", "--file", str(resource), "--data", str(self.data)]
        if self.secrets is not None:
            command += ["--secrets", str(self.secrets)]
        environment = {
            **os.environ,
            "LOCKKEEPER_POD": self.name,
            "LOCKKEEPER_POD_UID": self.uid,
            "LOCKKEEPER_NAMESPACE": self.namespace,
            "LOCKKEEPER_SERVICE_ACCOUNT": str(self.account or self.home / "nothing"),
        }
        if self.api:
            environment["LOCKKEEPER_API_SERVER"] = self.api
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                command, stdout=log, stderr=subprocess.STDOUT, env=environment
            )

    def ask(self, path: str, token: str = "", timeout: float = 2.0) -> Any:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        request = urllib.request.Request(f"{self.admin}{path}", headers=headers)
        with urllib.request.urlopen(request, timeout=timeout) as answer:
            return json.load(answer)

    def status(self) -> dict[str, Any]:
        """Return what the status says, or only an empty role while nobody answers."""
        try:
            found: dict[str, Any] = self.ask("/api/v1/status")
        except OSError:
            return {"role": ""}
        return found

    def wait_for(self, role: str) -> "Pod":
        wait_until(lambda: self._is(role))
        return self

    def _is(self, role: str) -> bool:
        assert self.process.poll() is None, self.log.read_text()
        return bool(self.status()["role"] == role)

    def stop(self) -> int:
        """Stop the process as a kubelet does; returns its exit code."""
        if self.process.poll() is None:
            self.process.terminate()
        return self.process.wait(SECONDS_MAX)

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.kill()
            self.process.wait()
