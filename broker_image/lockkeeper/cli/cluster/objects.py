"""A Broker and what belongs to it, as a person wants to see them together."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from lockkeeper.cli.cluster.kubectl import Kubectl, Manifest
from lockkeeper.cli.errors import CommandError
from lockkeeper_api.pod_names import ROLE_LABEL

BROKERS, DESTINATIONS = "brokers.lockkeeper.dev", "destinations.lockkeeper.dev"
NETWORKS = "brokernetworks.lockkeeper.dev"
MASTER = "master"
CONTAINER = "broker"


@dataclass(frozen=True)
class BrokerObjects:
    """One Broker: itself, its pods, Lease, claim, Destinations and networks of its namespace."""

    broker: Manifest
    pods: Sequence[Manifest]
    lease: Manifest | None
    claim: Manifest | None
    destinations: Sequence[Manifest]
    networks: Sequence[Manifest] = ()

    @property
    def name(self) -> str:
        """Name of the Broker."""
        return str(self.broker["metadata"]["name"])


def broker_objects(kubectl: Kubectl, name: str) -> BrokerObjects:
    """Return the Broker *name* with all that belongs to it. Raises KubectlError."""
    broker = kubectl.get(BROKERS, name)
    pods = pods_of(kubectl, name)
    claim = _claim_of(pods)
    return BrokerObjects(
        broker,
        pods,
        kubectl.find("leases.coordination.k8s.io", name),
        kubectl.find("persistentvolumeclaims", claim) if claim else None,
        [each for each in kubectl.list(DESTINATIONS) if _is_on(each, broker)],
        [each for each in kubectl.list(NETWORKS) if member_of(each, broker) is not None],
    )


def pods_of(kubectl: Kubectl, name: str) -> list[Manifest]:
    """Return the pods of the Broker *name*, by their names."""
    selector = f"app.kubernetes.io/name=lockkeeper,app.kubernetes.io/instance={name}"
    found = kubectl.list("pods", f"--selector={selector},app.kubernetes.io/component=broker")
    return sorted(found, key=lambda pod: str(pod["metadata"]["name"]))


def master_of(pods: Sequence[Manifest], name: str) -> Manifest:
    """Return the pod that says it is the master. Raises CommandError when none does."""
    for pod in pods:
        if role_of(pod) == MASTER and "deletionTimestamp" not in pod["metadata"]:
            return pod
    raise CommandError(f"{name} has no master: `kubectl lockkeeper status {name}` shows more")


def name_of(pod: Manifest) -> str:
    """Return a pod's name."""
    return str(pod["metadata"]["name"])


def role_of(pod: Manifest) -> str:
    """Return the role that a broker has written on its pod, empty if none."""
    return str(pod["metadata"].get("labels", {}).get(ROLE_LABEL, ""))


def condition(resource: Manifest, kind: str) -> Manifest:
    """Return a condition of a resource's status, an unknown one if it is not there."""
    for each in resource.get("status", {}).get("conditions", ()):
        if each["type"] == kind:
            return dict(each)
    return {"type": kind, "status": "Unknown", "reason": "NotSeenYet", "message": ""}


def member_of(network: Manifest, broker: Manifest) -> Manifest | None:
    """Return what a network's status tells of a Broker, None if it is not in it."""
    key = (broker["metadata"]["namespace"], broker["metadata"]["name"])
    members: Sequence[Manifest] = network.get("status", {}).get("members", ())
    return next((each for each in members if (each["namespace"], each["name"]) == key), None)


def seconds_since(time: str, now: float) -> float:
    """Return how long ago *time*, as Kubernetes writes it, was; *now* is in s since 1970."""
    return now - datetime.fromisoformat(time).timestamp()


def _is_on(destination: Manifest, broker: Manifest) -> bool:
    reference: dict[str, str] = destination["spec"]["brokerRef"]
    namespace, name = (str(broker["metadata"][key]) for key in ("namespace", "name"))
    return reference["name"] == name and reference.get("namespace", namespace) == namespace


def _claim_of(pods: Sequence[Manifest]) -> str:
    """Return the claim with the journal, empty without pods."""
    for pod in pods:
        for volume in pod["spec"].get("volumes", ()):
            if volume["name"] == "journal" and "persistentVolumeClaim" in volume:
                return str(volume["persistentVolumeClaim"]["claimName"])
    return ""
