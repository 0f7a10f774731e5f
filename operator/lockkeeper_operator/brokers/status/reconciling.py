"""Reconciling and Stalled: whether something is still being done, or waits for a person.

As kstatus reads them (Flux, kpt, Argo): the first keeps a roll-out from counting as done, the
second says that waiting alone does not help.
"""

from lockkeeper_operator.brokers.pods.claim_ends import CLAIM_ENDS
from lockkeeper_operator.brokers.pods.rollout import NO_SUCCESSOR, PODS_END
from lockkeeper_operator.brokers.pods.scale_in import HANDING_OVER
from lockkeeper_operator.brokers.status import ready, upgrading
from lockkeeper_operator.brokers.status.facts import Facts
from lockkeeper_operator.kubernetes.children.child_steps import CHILD_ENDS
from lockkeeper_operator.kubernetes.children.steps import Wait
from lockkeeper_operator.kubernetes.verdict import NO, YES, Verdict

RECONCILING, STALLED = "Reconciling", "Stalled"
PODS_BROKEN = "PodsBroken"
HOPELESS = frozenset(
    {
        "BootstrapFailed", CLAIM_ENDS, "ClaimExists", "Conflict", "Failed", "Fenced",
        "InvalidSpec", PODS_BROKEN, "Refused", "RolloutBroken", "TwoMasters",
    }
)  # fmt: skip
"""Reasons of Ready, where waiting alone does not help."""
UNDONE = frozenset({CHILD_ENDS, HANDING_OVER, NO_SUCCESSOR, PODS_END})
"""Reasons to wait with fewer pods, or with children that are being deleted: clients may be served
all the same.
"""
AT_REST = frozenset({"Hibernated"})
"""Reasons of Ready, where nothing is to be done although nobody is served."""


def reconciling(facts: Facts) -> Verdict:
    """Return the condition Reconciling."""
    present = ready.condition(facts)
    if _is_hopeless(facts, present):
        return Verdict(RECONCILING, NO, "Stalled", present.message)
    rollout = upgrading.condition(facts)
    if rollout.status == YES and not facts.desired.paused:
        return Verdict(RECONCILING, YES, rollout.reason, rollout.message)
    if present.status != YES and present.reason not in AT_REST and not facts.desired.paused:
        return Verdict(RECONCILING, YES, present.reason, present.message)
    for step in facts.steps:
        if isinstance(step, Wait) and step.reason in UNDONE:
            return Verdict(RECONCILING, YES, step.reason, step.message)
    return Verdict(RECONCILING, NO, "Done", "the Broker is as its spec says")


def stalled(facts: Facts) -> Verdict:
    """Return the condition Stalled."""
    present = ready.condition(facts)
    if _is_hopeless(facts, present):
        return stalled_by(present)
    return Verdict(STALLED, NO, "GettingOn", "nothing needs a person")


def stalled_by(present: Verdict) -> Verdict:
    """Return the condition Stalled beside a Ready that waits for a person."""
    return Verdict(STALLED, YES, present.reason, present.message)


def _is_hopeless(facts: Facts, present: Verdict) -> bool:
    """Return whether waiting alone does not help; a pod without a node may yet get one."""
    if present.reason == PODS_BROKEN:
        return any(pod.hopeless for pod in facts.pods)
    return present.reason in HOPELESS
