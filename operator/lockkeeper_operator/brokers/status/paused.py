"""Paused: the operator leaves everything as it is."""

from lockkeeper_operator.brokers.status.facts import Facts
from lockkeeper_operator.kubernetes.verdict import NO, YES, Verdict

TYPE = "Paused"


def condition(facts: Facts) -> Verdict:
    """Return the condition."""
    if facts.desired.paused:
        return Verdict(TYPE, YES, "Paused", "spec.paused is set: the operator changes nothing")
    return Verdict(TYPE, NO, "Active", "the operator looks after the Broker")
