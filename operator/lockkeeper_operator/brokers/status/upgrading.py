"""Upgrading: pods are brought to another revision."""

from lockkeeper_operator.brokers.status.facts import Facts
from lockkeeper_operator.kubernetes.children.steps import Wait
from lockkeeper_operator.kubernetes.verdict import NO, YES, Verdict

TYPE = "Upgrading"


def condition(facts: Facts) -> Verdict:
    """Return the condition; its reason says what is waited for."""
    revision = facts.desired.revision
    behind = [pod.name for pod in facts.pods if pod.revision != revision]
    if not behind:
        return Verdict(TYPE, NO, "UpToDate", f"all pods have revision {revision}")
    left = f"{', '.join(behind)} still without revision {revision}"
    for step in facts.steps:
        if isinstance(step, Wait):
            return Verdict(TYPE, YES, step.reason, f"{left}: {step.message}")
    return Verdict(TYPE, YES, "RollingOut", left)
