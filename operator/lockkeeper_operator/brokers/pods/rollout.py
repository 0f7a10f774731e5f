"""Pods to the revision that they are to have: standbys first, switch over, the old master last.

At most one pod that works is away at a time by the operator's doing, and the master goes only
when a standby of the new revision is proven able to take over.
"""

from collections.abc import Iterator, Sequence

from lockkeeper_operator.brokers.desired.target import Desired
from lockkeeper_operator.brokers.observed import RECOVERING, Pod
from lockkeeper_operator.brokers.steps import DeletePod, Push, Step, SwitchOver
from lockkeeper_operator.kubernetes.children.steps import Wait
from lockkeeper_operator.names import APPROVE_ANNOTATION

PODS_END = "PodsEnd"
POD_STARTS = "PodStarts"
RECOVERY = "Recovery"
TWO_MASTERS = "TwoMasters"
NO_SUCCESSOR = "NoSuccessor"
APPROVAL = "ApprovalNeeded"
BROKEN = "Broken"
NOT_BEGUN = "Not begun"
OUTDATED = "Outdated"


def pod_steps(pods: Sequence[Pod], desired: Desired) -> tuple[Step, ...]:
    """Return the next steps about pods, none when there is nothing to do."""
    if not desired.pods:
        return (Wait(PODS_END, "the pods are being stopped"),) if pods else ()
    own = [pod for pod in pods if pod.name in desired.pods]
    outdated = [pod for pod in own if _is_outdated(pod, desired)]
    useless = tuple(_useless(outdated))
    if useless:
        return useless
    if len(own) < len(pods):
        return (Wait(PODS_END, "surplus pods are being stopped"),)
    unready = _unready(own, desired)
    if unready:
        return (Wait(POD_STARTS, unready),)
    if outdated:
        return (_next_of(outdated, own, desired),)
    return _pushes(own, desired)


def _useless(outdated: Sequence[Pod]) -> Iterator[DeletePod]:
    """Yield the deletion of pods that do not run, and never will as they are.

    What keeps one from beginning is not always told, such as a Secret that is not there; mended is
    it only in the pod that comes after.
    """
    for pod in outdated:
        if pod.broken:
            yield DeletePod(pod.name, pod.uid, BROKEN)
        elif not pod.begun:
            yield DeletePod(pod.name, pod.uid, NOT_BEGUN)


def _is_outdated(pod: Pod, desired: Desired) -> bool:
    """Return whether the pod is to be replaced; one that is fenced stays for a look inside."""
    is_old = pod.revision != desired.revision
    return is_old and not pod.terminating and pod.name not in desired.fenced


def _unready(own: Sequence[Pod], desired: Desired) -> str:
    """Return which pods are waited for, empty for none."""
    there = {pod.name for pod in own if pod.ready and not pod.terminating}
    trouble = {pod.name: f" ({pod.trouble})" for pod in own if pod.trouble}
    waited_for = [name for name in desired.pods if name not in there]
    names = ", ".join(name + trouble.get(name, "") for name in waited_for)
    return f"pods that are not ready: {names}" if names else ""


def _next_of(outdated: Sequence[Pod], own: Sequence[Pod], desired: Desired) -> Step:
    """Return what is done about the next pod of an old revision; all pods are ready."""
    leaders = [pod for pod in own if pod.leads]
    if len(leaders) > 1:
        names = " and ".join(pod.name for pod in leaders)
        return Wait(TWO_MASTERS, f"{names} both say that they are the master")
    if leaders and leaders[0].role == RECOVERING:
        return Wait(RECOVERY, f"{leaders[0].name} reads the journal")
    standbys = [pod for pod in outdated if not pod.leads]
    if standbys:
        last = max(standbys, key=_number)
        return DeletePod(last.name, last.uid, OUTDATED)
    return _replace_master(leaders[0], own, desired)


def _replace_master(master: Pod, own: Sequence[Pod], desired: Desired) -> Step:
    """Return what is done about a master of an old revision, all else being new."""
    if desired.supervised and desired.approved != desired.revision:
        approval = f"{APPROVE_ANNOTATION}={desired.revision}"
        return Wait(APPROVAL, f"annotate the Broker with {approval} to update its master")
    if len(desired.pods) == 1:
        return DeletePod(master.name, master.uid, OUTDATED)
    successors = [pod for pod in own if pod.takes_over and pod.revision == desired.revision]
    if not successors:
        return Wait(NO_SUCCESSOR, "no standby is proven able to take over")
    return SwitchOver(master.name, master.uid, min(successors, key=_number).name)


def _pushes(own: Sequence[Pod], desired: Desired) -> tuple[Step, ...]:
    """Return what tells brokers of a configuration that they do not run with yet."""
    return tuple(
        Push(pod.name, desired.configuration)
        for pod in own
        if pod.report is not None
        and pod.report.configuration not in (None, desired.configuration)
        and pod.report.refused != desired.configuration
    )


def _number(pod: Pod) -> int:
    """Return the pod's number in its StatefulSet."""
    return int(pod.name.rpartition("-")[2])
