"""Claims that are there: all that may change is their size, and that only upwards."""

from lockkeeper_operator.kubernetes.manifests import Manifest
from lockkeeper_operator.kubernetes.quantities import quantity


def grown(present: Manifest, wanted: Manifest) -> Manifest:
    """Return *wanted* with what of a claim cannot change as it is at *present*.

    A size below the present one is not asked for: no volume shrinks.
    """
    spec = {**present.get("spec", {})}
    kept = {
        name: spec[name]
        for name in ("accessModes", "storageClassName", "dataSource")
        if name in spec
    }
    size = max(requested(present), requested(wanted), key=lambda text: quantity(text) or 0)
    resources = {"requests": {"storage": size}}
    # What a volume was made of is of no importance once it is there.
    asked = {name: value for name, value in wanted["spec"].items() if name != "dataSource"}
    return {**wanted, "spec": {**asked, **kept, "resources": resources}}


def requested(claim: Manifest) -> str:
    """Return the size that a claim asks for."""
    requests = claim.get("spec", {}).get("resources", {}).get("requests", {})
    return str(requests.get("storage", "0"))


def is_growing(claim: Manifest) -> bool:
    """Return whether the volume behind a bound claim is still smaller than asked for."""
    capacity = quantity(claim.get("status", {}).get("capacity", {}).get("storage", "0"))
    return (capacity or 0) < (quantity(requested(claim)) or 0)
