"""`kubectl lockkeeper logs`: what all brokers of a Broker say, each line with its pod."""

import subprocess

from lockkeeper.cli.cluster.kubectl import Kubectl
from lockkeeper.cli.cluster.objects import CONTAINER

PODS_MAX = 9
"""kubectl follows five at a time unless it is told; a Broker has at most nine."""


def show_logs(kubectl: Kubectl, name: str, *, follow: bool, lines: int, since: str | None) -> int:
    """Print the logs of all pods; returns kubectl's exit code."""
    selector = f"app.kubernetes.io/name=lockkeeper,app.kubernetes.io/instance={name}"
    words = ["logs", f"--selector={selector}", f"--container={CONTAINER}", "--prefix"]
    words += [f"--tail={lines}", f"--max-log-requests={PODS_MAX}"]
    words += ["--follow"] if follow else []
    words += [f"--since={since}"] if since else []
    return subprocess.run(kubectl.command(*words), check=False).returncode
