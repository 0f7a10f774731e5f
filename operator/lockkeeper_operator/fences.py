"""Pods that a person keeps from serving: told as soon as they answer, whatever else is going on."""

from collections.abc import Iterator, Sequence

from lockkeeper_operator.names import FENCED
from lockkeeper_operator.observed import Pod
from lockkeeper_operator.steps import Fence
from lockkeeper_operator.target import Desired


def fence_steps(pods: Sequence[Pod], desired: Desired) -> Iterator[Fence]:
    """Yield what tells brokers that they are fenced, or not any more.

    One that starts reads it beside its configuration; this is for those that run.
    """
    for pod in pods:
        wanted = pod.name in desired.fenced
        if pod.report is not None and (pod.report.role == FENCED) != wanted:
            yield Fence(pod.name, wanted)
