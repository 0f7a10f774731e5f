"""The conditions of an analysis: Submitted, Running, Succeeded, Failed, all of the latest run."""

from lockkeeper_operator.analyses.facts import AnalysisFacts
from lockkeeper_operator.kubernetes.children.steps import Conflict, Wait
from lockkeeper_operator.kubernetes.verdict import NO, UNKNOWN, YES, Verdict

NOT_BEGUN = "no run has begun"


def submitted(facts: AnalysisFacts) -> Verdict:
    """Submitted: the run, or what makes runs by a schedule, is there."""
    kind = "Submitted"
    if facts.missing_api:
        message = f"the cluster does not know {facts.missing_api}"
        return Verdict(kind, NO, "EngineMissing", message)
    for step in facts.steps:
        if isinstance(step, Conflict):
            return Verdict(kind, NO, "Conflict", f"{step.kind} {step.name} is {step.owner}'s")
    if facts.refusal and not facts.there:
        return Verdict(kind, NO, "Refused", facts.refusal)
    for step in facts.steps:
        if isinstance(step, Wait) and not facts.there:
            return Verdict(kind, NO, step.reason, step.message)
    if facts.scheduled and facts.there:
        return Verdict(kind, YES, "Scheduled", "runs begin by the schedule")
    if facts.latest is not None:
        return Verdict(kind, YES, "Submitted", f"{facts.latest.kind} {facts.latest.name}")
    return Verdict(kind, UNKNOWN, "NotBegun", NOT_BEGUN)


def running(facts: AnalysisFacts) -> Verdict:
    """Running: the latest run's driver is at work."""
    kind, run = "Running", facts.latest
    if run is None:
        return Verdict(kind, NO, "NotBegun", NOT_BEGUN)
    if run.state == "Running" and run.idle:
        return Verdict(kind, YES, "ExecutorsWait", f"{run.name} runs, but {run.idle}")
    if run.state == "Running":
        return Verdict(kind, YES, "Running", f"{run.name} runs")
    if run.ended:
        return Verdict(kind, NO, run.state, f"{run.name} has ended")
    if run.trouble:
        return Verdict(kind, NO, run.trouble, f"the driver of {run.name} does not start")
    return Verdict(kind, NO, "Starting", f"{run.name} has not started yet")


def succeeded(facts: AnalysisFacts) -> Verdict:
    """Succeeded: the latest run wrote its results; unknown before it ends."""
    return _end(facts, "Succeeded", "Failed")


def failed(facts: AnalysisFacts) -> Verdict:
    """Failed: the latest run did not, and these were its driver's last lines."""
    return _end(facts, "Failed", "Succeeded")


def _end(facts: AnalysisFacts, this: str, other: str) -> Verdict:
    run = facts.latest
    if run is None or not run.ended:
        return Verdict(this, UNKNOWN, "NotEnded", "no run has ended" if run is None else run.name)
    if run.state == this:
        return Verdict(this, YES, this, run.message or f"{run.name} has ended")
    return Verdict(this, NO, other, f"{run.name} has ended")


CONDITIONS = (submitted, running, succeeded, failed)
