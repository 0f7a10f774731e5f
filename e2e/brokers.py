"""A Broker under test: its resource, its pods, who is the master."""

from dataclasses import dataclass
from typing import Any

from kube import Manifest, Namespace, condition, wait_until

from lockkeeper_api.pod_names import ROLE_LABEL

API_VERSION = "lockkeeper.dev/v1alpha1"
READY_SECONDS_MAX = 90.0


def broker(name: str, **spec: Any) -> Manifest:
    """Return a pair of brokers with a small claim and *spec*."""
    settings = {"replicas": 2, "storage": {"size": "1Gi"}, **spec}
    return {
        "apiVersion": API_VERSION,
        "kind": "Broker",
        "metadata": {"name": name},
        "spec": settings,
    }


@dataclass(frozen=True, slots=True)
class Brokers:
    """One Broker in a namespace."""

    namespace: Namespace
    name: str

    def resource(self) -> Manifest | None:
        """Return the resource."""
        return self.namespace.get("broker", self.name)

    def condition(self, kind: str) -> str:
        """Return the status of a condition, of the present generation."""
        return condition(self.resource(), kind)

    def wait_ready(self, seconds: float = READY_SECONDS_MAX) -> float:
        """Wait until the Broker says that it is ready; returns the seconds that it took."""
        return wait_until(
            f"Broker {self.name} is Ready", lambda: self.condition("Ready") == "True", seconds
        )

    def wait_settled(self, seconds: float = READY_SECONDS_MAX) -> None:
        """Wait until all is there: a master, standbys, no roll-out going on."""
        wanted = {"Ready": "True", "StandbysReady": "True", "Upgrading": "False"}
        wait_until(
            f"Broker {self.name} is settled",
            lambda: all(self.condition(kind) == status for kind, status in wanted.items()),
            seconds,
        )

    def pods(self) -> list[Manifest]:
        """Return the pods."""
        return self.namespace.items("pods", f"app.kubernetes.io/instance={self.name}")

    def pod_uids(self) -> dict[str, str]:
        """Return the pods' uids by their names."""
        return {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in self.pods()}

    def lives(self) -> dict[str, tuple[str, list[int]]]:
        """Return what tells of any restart, by pod: its uid, and its containers' restarts."""
        return {
            pod["metadata"]["name"]: (
                pod["metadata"]["uid"],
                [status["restartCount"] for status in pod["status"]["containerStatuses"]],
            )
            for pod in self.pods()
        }

    def with_role(self, role: str) -> list[Manifest]:
        """Return the pods whose brokers say that they have *role*."""
        return [
            pod
            for pod in self.pods()
            if pod["metadata"]["labels"].get(ROLE_LABEL) == role
            and "deletionTimestamp" not in pod["metadata"]
        ]

    def master(self, seconds: float = READY_SECONDS_MAX) -> Manifest:
        """Return the master's pod, once there is exactly one."""
        wait_until("there is one master", lambda: len(self.with_role("master")) == 1, seconds)
        return self.with_role("master")[0]

    def wait_other_master(self, than: str, seconds: float = READY_SECONDS_MAX) -> str:
        """Wait until another pod than *than* is the only master; returns its name."""

        def names() -> list[str]:
            return [pod["metadata"]["name"] for pod in self.with_role("master")]

        wait_until(f"another master than {than}", lambda: names() not in ([], [than]), seconds)
        return next(name for name in names() if name != than)
