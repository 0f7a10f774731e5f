"""MasterElected: one broker has the lock and serves clients."""

from lockkeeper_operator.brokers.observed import RECOVERING
from lockkeeper_operator.brokers.pods.scale_in import HANDING_OVER
from lockkeeper_operator.brokers.status.facts import Facts
from lockkeeper_operator.kubernetes.children.steps import Wait
from lockkeeper_operator.kubernetes.verdict import NO, YES, Verdict

TYPE = "MasterElected"


def condition(facts: Facts) -> Verdict:
    """Return the condition."""
    if facts.desired.hibernated:
        return Verdict(TYPE, NO, "Hibernated", "spec.hibernated is set: no pods run")
    if facts.master is not None:
        return Verdict(TYPE, YES, "Elected", f"{facts.master.name} is the master")
    if facts.masters:
        names = " and ".join(pod.name for pod in facts.masters)
        return Verdict(TYPE, NO, "TwoMasters", f"{names} both say that they are the master")
    for pod in facts.observed.pods:
        if pod.role == RECOVERING:
            return Verdict(TYPE, NO, "Recovering", f"{pod.name} reads the journal")
    for step in facts.steps:
        if isinstance(step, Wait) and step.reason == HANDING_OVER:
            return Verdict(TYPE, NO, step.reason, step.message)
    troubles = [f"{pod.name}: {pod.trouble}" for pod in facts.pods if pod.trouble]
    if troubles:
        return Verdict(TYPE, NO, "PodsBroken", "; ".join(troubles))
    if facts.desired.fenced.issuperset(facts.desired.pods):
        return Verdict(TYPE, NO, "Fenced", "all pods are fenced")
    return Verdict(TYPE, NO, "NoMaster", "no broker has the lock yet")
