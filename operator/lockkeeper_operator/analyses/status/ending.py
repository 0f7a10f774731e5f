"""Conditions about the end of the latest run."""

from lockkeeper_operator.analyses.status.facts import AnalysisFacts
from lockkeeper_operator.kubernetes.verdict import NO, UNKNOWN, YES, Verdict


def end_of(facts: AnalysisFacts, this: str, other: str) -> Verdict:
    """Return whether the latest run came to *this* end; the *other* end is a no."""
    run = facts.latest
    if run is None or not run.ended:
        return Verdict(this, UNKNOWN, "NotEnded", "no run has ended" if run is None else run.name)
    if run.state == this:
        return Verdict(this, YES, this, run.message or f"{run.name} has ended")
    return Verdict(this, NO, other, f"{run.name} has ended")
