"""Failed: the latest run wrote no results; the message is its driver's last lines."""

from lockkeeper_operator.analyses.status.ending import end_of
from lockkeeper_operator.analyses.status.facts import AnalysisFacts
from lockkeeper_operator.kubernetes.verdict import Verdict

TYPE = "Failed"


def condition(facts: AnalysisFacts) -> Verdict:
    """Return the condition."""
    return end_of(facts, TYPE, "Succeeded")
