"""Running: the driver of the latest run is at work."""

from lockkeeper_operator.analyses.status.facts import AnalysisFacts
from lockkeeper_operator.kubernetes.verdict import NO, YES, Verdict

TYPE = "Running"


def condition(facts: AnalysisFacts) -> Verdict:
    """Return the condition."""
    run = facts.latest
    if run is None:
        return Verdict(TYPE, NO, "NotBegun", "no run has begun")
    if run.state == "Running" and run.idle:
        return Verdict(TYPE, YES, "ExecutorsWait", f"{run.name} runs, but {run.idle}")
    if run.state == "Running":
        return Verdict(TYPE, YES, "Running", f"{run.name} runs")
    if run.ended:
        return Verdict(TYPE, NO, run.state, f"{run.name} has ended")
    if run.trouble:
        return Verdict(TYPE, NO, run.trouble, f"the driver of {run.name} does not start")
    return Verdict(TYPE, NO, "Starting", f"{run.name} has not started yet")
