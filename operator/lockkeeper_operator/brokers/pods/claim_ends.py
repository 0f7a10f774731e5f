"""A claim that is being deleted: it stays, and the journal in it, as long as pods use it.

Whoever deleted it may not have meant to. So pods are left as they are, whatever else is wanted: the
last one that went would take the journal with it.
"""

from lockkeeper_operator.brokers.desired.target import Desired
from lockkeeper_operator.brokers.observed import Observed
from lockkeeper_operator.kubernetes.children.steps import Wait
from lockkeeper_operator.kubernetes.manifests import Manifest

CLAIM = "PersistentVolumeClaim"
CLAIM_ENDS = "ClaimEnds"


def claim_ends(observed: Observed, desired: Desired) -> Wait | None:
    """Return why pods are left as they are, None where nothing keeps them."""
    claim = observed.children.get((CLAIM, desired.claim))
    if claim is None or not observed.pods:
        return None
    why = why_it_ends(claim)
    return Wait(CLAIM_ENDS, why) if why else None


def why_it_ends(claim: Manifest) -> str:
    """Return what becomes of a claim that is being deleted, empty for one that is not."""
    if "deletionTimestamp" not in claim["metadata"]:
        return ""
    name, volume = claim["metadata"]["name"], claim.get("spec", {}).get("volumeName", "")
    way_out = f"set persistentVolumeReclaimPolicy of volume {volume} to Retain to keep the journal"
    return f"claim {name} is being deleted, and goes with the last pod that uses it: {way_out}"
