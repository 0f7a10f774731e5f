"""Submitted: the run, or what makes runs by a schedule, is there."""

from lockkeeper_operator.analyses.status.facts import AnalysisFacts
from lockkeeper_operator.kubernetes.children.steps import Conflict, Wait
from lockkeeper_operator.kubernetes.verdict import NO, UNKNOWN, YES, Verdict

TYPE = "Submitted"


def condition(facts: AnalysisFacts) -> Verdict:
    """Return the condition."""
    if facts.missing_api:
        message = f"the cluster does not know {facts.missing_api}"
        return Verdict(TYPE, NO, "EngineMissing", message)
    for step in facts.steps:
        if isinstance(step, Conflict):
            return Verdict(TYPE, NO, "Conflict", f"{step.kind} {step.name} belongs to {step.owner}")
    if facts.refusal and not facts.there:
        return Verdict(TYPE, NO, "Refused", facts.refusal)
    for step in facts.steps:
        if isinstance(step, Wait) and not facts.there:
            return Verdict(TYPE, NO, step.reason, step.message)
    if facts.scheduled and facts.there:
        return Verdict(TYPE, YES, "Scheduled", "the schedule decides when runs begin")
    if facts.latest is not None:
        return Verdict(TYPE, YES, "Submitted", f"{facts.latest.kind} {facts.latest.name}")
    return Verdict(TYPE, UNKNOWN, "NotBegun", "no run has begun")
