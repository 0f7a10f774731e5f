"""Exposed: every listener has the way in that its spec asks for."""

from lockkeeper_operator.brokers.status.facts import Facts
from lockkeeper_operator.kubernetes.verdict import NO, YES, Verdict

TYPE = "Exposed"
WAYS_OUT = {"TLSRoute": "install the Gateway API, 1.5 or newer, or set ingressClassName"}


def condition(facts: Facts) -> Verdict:
    """Return the condition; a kind that comes later is noticed by itself."""
    missing = facts.desired.missing_kinds
    if missing:
        told = (f"the cluster does not know {kind}: {WAYS_OUT[kind]}" for kind in missing)
        return Verdict(TYPE, NO, "KindMissing", "; ".join(told))
    if facts.desired.self_signed:
        names = ", ".join(facts.desired.self_signed)
        message = f"the cluster does not know cert-manager: the operator's authority signs {names}"
        return Verdict(TYPE, YES, "SelfSigned", message)
    return Verdict(TYPE, YES, "Exposed", "every listener has its Services and routes")
