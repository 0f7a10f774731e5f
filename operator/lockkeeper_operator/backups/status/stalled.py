"""Stalled: no backup comes before somebody changes something."""

from lockkeeper_operator.backups.status.standing import Standing
from lockkeeper_operator.kubernetes.verdict import NO, YES, Verdict

TYPE = "Stalled"


def condition(standing: Standing) -> Verdict:
    """Return the condition."""
    status = YES if standing.kind == TYPE else NO
    return Verdict(TYPE, status, standing.reason, standing.message)
