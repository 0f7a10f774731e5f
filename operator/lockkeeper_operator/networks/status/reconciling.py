"""Reconciling: bridges are awaited, and come without anybody's help."""

from lockkeeper_operator.kubernetes.verdict import NO, YES, Verdict
from lockkeeper_operator.networks.status.standing import Standing

TYPE = "Reconciling"


def condition(standing: Standing) -> Verdict:
    """Return the condition."""
    status = YES if standing.kind == TYPE else NO
    return Verdict(TYPE, status, standing.reason, standing.message)
