"""Signals to brokers, from outside their containers: nothing inside may kill the first process."""

import json
from dataclasses import dataclass

from kube import Manifest, Namespace

NAME = "signals"
LABELS = {"app": NAME}
# Prints when the signal was sent, by the clock of the node.
SCRIPT = """
import os, pathlib, sys, time
wanted = f"LOCKKEEPER_POD_UID={sys.argv[1]}".encode()
for folder in pathlib.Path("/proc").glob("[0-9]*"):
    try:
        environment = (folder / "environ").read_bytes().split(b"\\0")
    except OSError:
        continue
    if wanted in environment:
        os.kill(int(folder.name), int(sys.argv[2]))
        print(time.time())
"""


@dataclass(frozen=True, slots=True)
class Signals:
    """A pod on every node that sees all processes of it."""

    namespace: Namespace

    def start(self, image: str) -> None:
        """Start the pods, and wait until they run."""
        self.namespace.apply(_daemon_set(image))
        self.namespace.kubectl("rollout", "status", f"daemonset/{NAME}", "--timeout=120s")

    def send(self, pod: Manifest, number: int) -> float:
        """Send a signal to the broker in *pod*; returns when that was."""
        node = pod["spec"]["nodeName"]
        sender = self.namespace.kubectl(
            "get", "pods", "-l", f"app={NAME}", f"--field-selector=spec.nodeName={node}",
            "-o", "name",
        ).strip()  # fmt: skip
        command = ("python", "-c", SCRIPT, pod["metadata"]["uid"], str(number))
        printed = self.namespace.kubectl("exec", sender, "--", *command).split()
        assert printed, f"no process of pod {pod['metadata']['name']} on {node}"
        return float(json.loads(printed[0]))


def _daemon_set(image: str) -> Manifest:
    container = {
        "name": NAME,
        "image": image,
        "command": ["sleep", "infinity"],
        "securityContext": {"privileged": True, "runAsUser": 0},
    }
    pod = {
        "hostPID": True,
        "terminationGracePeriodSeconds": 0,
        "tolerations": [{"operator": "Exists"}],
        "containers": [container],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": NAME},
        "spec": {
            "selector": {"matchLabels": LABELS},
            "template": {"metadata": {"labels": LABELS}, "spec": pod},
        },
    }
