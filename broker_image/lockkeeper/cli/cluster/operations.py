"""Commands on a Broker in a cluster: fence, pause, hibernate; promotion is in `promotion.py`."""

from lockkeeper.cli.cluster.kubectl import Kubectl
from lockkeeper.cli.cluster.objects import BROKERS, name_of, pods_of
from lockkeeper.cli.errors import misused
from lockkeeper_api.pod_names import FENCED_ANNOTATION


def set_field(kubectl: Kubectl, name: str, field: str, wanted: bool) -> None:
    """Set a switch of the Broker's spec."""
    kubectl.patch(BROKERS, name, {"spec": {field: wanted}})


def set_fence(kubectl: Kubectl, name: str, pod: str, fenced: bool) -> None:
    """Put *pod* behind the fence, or let it out. Raises CommandError if it is not the Broker's."""
    if pod not in map(name_of, pods_of(kubectl, name)):
        raise misused(f"{pod} is no pod of {name}")
    names = fences(kubectl, name) - {pod}
    put_fences(kubectl, name, names | {pod} if fenced else names)


def fences(kubectl: Kubectl, name: str) -> frozenset[str]:
    """Return which pods are to be behind the fence."""
    metadata = kubectl.get(BROKERS, name)["metadata"]
    present: str = metadata.get("annotations", {}).get(FENCED_ANNOTATION, "")
    return frozenset(filter(None, present.split(",")))


def put_fences(kubectl: Kubectl, name: str, pods: frozenset[str]) -> None:
    """Let these pods, and no others, be behind the fence."""
    wanted = ",".join(sorted(pods)) or None
    kubectl.patch(BROKERS, name, {"metadata": {"annotations": {FENCED_ANNOTATION: wanted}}})
