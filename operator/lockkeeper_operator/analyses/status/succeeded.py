"""Succeeded: the latest run wrote its results; unknown before it ends."""

from lockkeeper_operator.analyses.status.ending import end_of
from lockkeeper_operator.analyses.status.facts import AnalysisFacts
from lockkeeper_operator.kubernetes.verdict import Verdict

TYPE = "Succeeded"


def condition(facts: AnalysisFacts) -> Verdict:
    """Return the condition."""
    return end_of(facts, TYPE, "Failed")
