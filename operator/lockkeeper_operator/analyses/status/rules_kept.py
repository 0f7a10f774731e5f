"""RulesKept: the reports of the latest run keep within the rules of the spec."""

from lockkeeper_operator.analyses.status.facts import AnalysisFacts
from lockkeeper_operator.kubernetes.verdict import NO, UNKNOWN, YES, Verdict

TYPE = "RulesKept"


def condition(facts: AnalysisFacts) -> Verdict:
    """Return the condition."""
    run = facts.latest
    if run is None or not run.ended:
        return Verdict(TYPE, UNKNOWN, "NotEnded", "no run has ended" if run is None else run.name)
    if run.state != "Succeeded":
        return Verdict(TYPE, UNKNOWN, "RunFailed", f"{run.name} wrote no reports")
    if facts.broken is None:
        return Verdict(TYPE, UNKNOWN, "NotTold", f"{run.name} told nothing about rules")
    if facts.broken:
        return Verdict(TYPE, NO, "Broken", "; ".join(facts.broken))
    return Verdict(TYPE, YES, "Kept", f"{run.name} found no rule broken")
