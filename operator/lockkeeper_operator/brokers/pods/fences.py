"""Pods that are kept from serving: told as soon as they answer, whatever else is going on."""

from collections.abc import Collection, Iterator, Sequence

from lockkeeper_operator.brokers.observed import Pod
from lockkeeper_operator.brokers.steps import Fence
from lockkeeper_operator.names import FENCED


def fence_steps(pods: Sequence[Pod], fenced: Collection[str]) -> Iterator[Fence]:
    """Yield what tells brokers that they are *fenced*, or not any more.

    One that starts reads what a person wants beside its configuration; this is for those that run.
    """
    # Who leads last: nobody who is to be fenced may take over.
    for pod in sorted(pods, key=lambda pod: pod.leads):
        wanted = pod.name in fenced
        if pod.report is not None and (pod.report.role == FENCED) != wanted:
            yield Fence(pod.name, wanted)
