"""Fewer replicas than before: the master hands over first, where it is among those that go.

A StatefulSet takes away the pods of the highest numbers, whatever they are. All of these are fenced
until one that stays is the master; only then the StatefulSet learns of the new number.
"""

from lockkeeper_operator.brokers.desired.target import Desired
from lockkeeper_operator.brokers.observed import Observed, Pod
from lockkeeper_operator.brokers.pods.rollout import NO_SUCCESSOR
from lockkeeper_operator.kubernetes.children.steps import Wait
from lockkeeper_operator.kubernetes.manifests import Manifest
from lockkeeper_operator.names import FENCED, MASTER

STATEFUL_SET, ROLE = "StatefulSet", "Role"
HANDING_OVER = "HandingOver"


def leaving(observed: Observed, desired: Desired) -> tuple[Pod, ...]:
    """Return the pods that the StatefulSet has, and is not to have any more."""
    if not desired.pods or _replicas(observed, desired) <= len(desired.pods):
        return ()
    return tuple(pod for pod in observed.pods if pod.name not in desired.pods)


def fenced(observed: Observed, desired: Desired) -> frozenset[str]:
    """Return which pods are kept from serving and taking over, as long as one hands over."""
    going = leaving(observed, desired)
    if any(pod.leads for pod in going) and _successors(observed, desired):
        return frozenset(pod.name for pod in going)
    return frozenset(pod.name for pod in going if pod.role == FENCED)


def handover(observed: Observed, desired: Desired) -> Wait | None:
    """Return what is waited for before there are fewer pods, None for nothing."""
    going = leaving(observed, desired)
    leaders = ", ".join(pod.name for pod in going if pod.leads)
    if leaders and not _successors(observed, desired):
        return Wait(
            NO_SUCCESSOR,
            f"{leaders} must go, and no standby that stays is proven able to take over",
        )
    own = [pod for pod in going if pod.role == FENCED and pod.name not in desired.fenced]
    serves = any(pod.role == MASTER for pod in observed.pods if pod.name in desired.pods)
    if leaders or (own and not serves):
        return Wait(HANDING_OVER, f"{leaders or own[0].name} hands over before it goes")
    return None


def held(desired: Desired, observed: Observed) -> tuple[Manifest, ...]:
    """Return the children that are wanted while the StatefulSet keeps its pods.

    Whoever hands over takes away his label, and the next master does if he cannot: both may.
    """
    replicas = _replicas(observed, desired)
    pods = [f"{desired.name}-{number}" for number in range(replicas)]
    return tuple(_held(child, replicas, pods) for child in desired.children)


def _held(child: Manifest, replicas: int, pods: list[str]) -> Manifest:
    if child["kind"] == STATEFUL_SET:
        return {**child, "spec": {**child["spec"], "replicas": replicas}}
    if child["kind"] == ROLE:
        rules = [
            {**rule, "resourceNames": pods} if rule["resources"] == ["pods"] else rule
            for rule in child["rules"]
        ]
        return {**child, "rules": rules}
    return child


def _successors(observed: Observed, desired: Desired) -> bool:
    return any(pod.takes_over for pod in observed.pods if pod.name in desired.pods)


def _replicas(observed: Observed, desired: Desired) -> int:
    """Return how many pods the StatefulSet makes at present."""
    present = observed.children.get((STATEFUL_SET, desired.name), {})
    return int(present.get("spec", {}).get("replicas") or 0)
