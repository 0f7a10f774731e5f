"""kubectl and helm, as tests call them."""

import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Manifest = dict[str, Any]

CACHE = Path(os.environ.get("LK_CLUSTER_CACHE", Path.home() / ".cache" / "lk-cluster"))
POLL_SECONDS = 0.3
COMMAND_SECONDS_MAX = 180.0


class CommandError(AssertionError):
    """A command failed; says what it printed."""


def kubectl_command() -> list[str]:
    """Return how kubectl is called here: the cluster's own binary has one, too."""
    found = shutil.which("kubectl")
    return [found] if found else [str(CACHE / "kube"), "kubectl"]


def helm_command() -> list[str]:
    """Return how helm is called here."""
    return [shutil.which("helm") or str(CACHE / "helm")]


def run(command: list[str], given: str | None = None, check: bool = True) -> str:
    """Return what a command prints. Raises CommandError if it fails, unless *check* is False."""
    done = subprocess.run(
        command, input=given, capture_output=True, text=True, check=False,
        timeout=COMMAND_SECONDS_MAX,
    )  # fmt: skip
    if check and done.returncode:
        raise CommandError(f"{' '.join(command)}: {done.stdout}{done.stderr}")
    return done.stdout


def wait_until(what: str, condition: Callable[[], object], seconds: float = 60.0) -> float:
    """Wait until *condition* holds; returns the seconds that it took."""
    began = time.monotonic()
    while not condition():
        taken = time.monotonic() - began
        if taken > seconds:
            raise AssertionError(f"in {seconds:.0f} s it did not come to this: {what}")
        time.sleep(POLL_SECONDS)
    return time.monotonic() - began


@dataclass(frozen=True, slots=True)
class Namespace:
    """One namespace, which a test has for itself."""

    name: str

    def kubectl(self, *arguments: str, given: str | None = None, check: bool = True) -> str:
        """Return what kubectl says."""
        return run([*kubectl_command(), "--namespace", self.name, *arguments], given, check)

    def apply(self, *manifests: Manifest) -> None:
        """Apply objects as a person would."""
        items = {"apiVersion": "v1", "kind": "List", "items": list(manifests)}
        self.kubectl("apply", "-f", "-", given=json.dumps(items))

    def get(self, kind: str, name: str) -> Manifest | None:
        """Return an object, None if it is not there."""
        text = self.kubectl("get", kind, name, "-o", "json", "--ignore-not-found")
        found: Manifest | None = json.loads(text) if text else None
        return found

    def items(self, kind: str, selector: str = "") -> list[Manifest]:
        """Return all objects of a kind, those with some labels."""
        found: list[Manifest] = json.loads(
            self.kubectl("get", kind, "-o", "json", *(["-l", selector] if selector else []))
        )["items"]
        return found

    def patch(self, kind: str, name: str, change: Manifest) -> None:
        """Merge *change* into an object."""
        self.kubectl("patch", kind, name, "--type=merge", "-p", json.dumps(change))

    def delete(self, kind: str, name: str, *options: str) -> None:
        """Delete an object and wait until it is gone."""
        self.kubectl("delete", kind, name, *options)

    def wait_ready(self, kind: str, name: str) -> None:
        """Wait until an object says that it is ready."""
        wait_until(
            f"{kind} {name} is Ready", lambda: condition(self.get(kind, name), "Ready") == "True"
        )


def condition(resource: Manifest | None, kind: str) -> str:
    """Return the status of a condition, Unknown where there is none for this generation."""
    if resource is None:
        return "Unknown"
    status = resource.get("status", {})
    if status.get("observedGeneration") != resource["metadata"]["generation"]:
        return "Unknown"
    found = (each["status"] for each in status.get("conditions", ()) if each["type"] == kind)
    return next(found, "Unknown")
