"""Nodes that lose their power or their network, where the machine below them can be reached."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from kube import run

CLUSTER = Path(__file__).parent / "cluster"
KINDS = ("cluster", "kind")
KIND_NETWORK = "kind"


@dataclass(frozen=True, slots=True)
class Nodes:
    """The nodes of e2e/cluster, or of kind: containers of Docker."""

    kind: str

    def number(self, node: str) -> str:
        """Return the number by which e2e/cluster knows a node."""
        return node.removeprefix("node")

    def kill(self, node: str) -> None:
        """Cut its power."""
        self._do(node, "kill", ["docker", "kill", node])

    def start(self, node: str) -> None:
        """Give it its power back."""
        self._do(node, "start", ["docker", "start", node])

    def cut(self, node: str) -> None:
        """Cut its network; what runs on it goes on."""
        self._do(node, "cut", ["docker", "network", "disconnect", KIND_NETWORK, node])

    def heal(self, node: str) -> None:
        """Give it its network back."""
        self._do(node, "heal", ["docker", "network", "connect", KIND_NETWORK, node])

    @contextmanager
    def without_power(self, node: str) -> Iterator[None]:
        """Cut a node's power for a while."""
        self.kill(node)
        try:
            yield
        finally:
            self.start(node)

    @contextmanager
    def without_network(self, node: str) -> Iterator[None]:
        """Cut a node's network for a while."""
        self.cut(node)
        try:
            yield
        finally:
            self.heal(node)

    def _do(self, node: str, verb: str, docker: list[str]) -> None:
        if self.kind == "cluster":
            # Its daemons keep the output open: nothing is read from it.
            subprocess.run(
                [str(CLUSTER / "node.sh"), verb, self.number(node)],
                check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            )  # fmt: skip
        else:
            run(docker)


def nodes_here() -> Nodes | None:
    """Return the nodes, None if LOCKKEEPER_E2E_NODES does not say how they are reached."""
    kind = os.environ.get("LOCKKEEPER_E2E_NODES", "")
    return Nodes(kind) if kind in KINDS else None
