"""StorageBound: the journal has its volume."""

from lockkeeper_operator.brokers.pods.claim_ends import CLAIM_ENDS, why_it_ends
from lockkeeper_operator.brokers.status.facts import Facts
from lockkeeper_operator.kubernetes.children.claims import is_growing, requested
from lockkeeper_operator.kubernetes.verdict import NO, YES, Verdict

TYPE = "StorageBound"
SHARED_MODE = "ReadWriteMany"


def condition(facts: Facts) -> Verdict:
    """Return the condition; a volume that grows is bound all the time."""
    claim, name = facts.claim, facts.desired.claim
    if claim is None:
        return Verdict(TYPE, NO, "ClaimMissing", f"there is no claim {name}")
    ending = why_it_ends(claim)
    if ending:
        return Verdict(TYPE, NO, CLAIM_ENDS, ending)
    phase = claim.get("status", {}).get("phase", "Pending")
    if phase != "Bound":
        return Verdict(TYPE, NO, f"Claim{phase}", f"claim {name} is {phase.lower()}")
    if is_growing(claim):
        return Verdict(TYPE, YES, "Growing", f"claim {name} grows to {requested(claim)}")
    modes = claim.get("spec", {}).get("accessModes", [])
    if len(facts.desired.pods) > 1 and SHARED_MODE not in modes:
        message = f"claim {name} is {', '.join(modes)}: all replicas must be on one node"
        return Verdict(TYPE, YES, "OneNodeOnly", message)
    return Verdict(TYPE, YES, "Bound", f"claim {name} is bound")
