"""Steps that bring a Broker's children to what they are to be."""

from collections.abc import Iterator

from lockkeeper_operator.claims import grown
from lockkeeper_operator.comparing import Path, added, covers
from lockkeeper_operator.desired.hashes import hash_of
from lockkeeper_operator.names import APPLIED_ANNOTATION
from lockkeeper_operator.observed import Manifest, Observed, key_of
from lockkeeper_operator.ownership import controller_of, stranger
from lockkeeper_operator.steps import Apply, Conflict, Create, Delete, Step, Wait
from lockkeeper_operator.target import Desired

CLAIM = "PersistentVolumeClaim"
CHILD_ENDS = "ChildEnds"


def child_steps(observed: Observed, desired: Desired) -> Iterator[Step]:
    """Yield the steps; none if all children are as they are to be."""
    for manifest in desired.children:
        key = key_of(manifest)
        tolerated = observed.tolerated.get(key, frozenset())
        step = _step(observed.children.get(key), manifest, desired, tolerated)
        if isinstance(step, Create | Apply):
            step = observed.stuck.get(key, step)
        if step is not None:
            yield step
    yield from _unwanted(observed, desired)


def stamped(manifest: Manifest) -> Manifest:
    """Return *manifest* with the hash of itself, which tells later what was applied."""
    metadata = manifest["metadata"]
    notes = {**metadata.get("annotations", {}), APPLIED_ANNOTATION: hash_of(manifest)}
    return {**manifest, "metadata": {**metadata, "annotations": notes}}


def _step(
    present: Manifest | None, wanted: Manifest, desired: Desired, tolerated: frozenset[Path]
) -> Step | None:
    """Return what is to be done about one child that is wanted."""
    if present is None:
        return Create(stamped(wanted))
    kind, name = key_of(wanted)
    if "deletionTimestamp" in present["metadata"]:
        return Wait(CHILD_ENDS, f"{kind} {name} is being deleted")
    owner = stranger(present, desired.name, desired.uid)
    if owner:
        return Conflict(kind, name, owner)
    if kind == CLAIM:
        wanted = grown(present, wanted)
    wanted = stamped(wanted)
    if covers(present, wanted) and added(present, wanted) <= tolerated:
        return None
    return Apply(wanted, drift=_applied(present) == _applied(wanted))


def _applied(manifest: Manifest) -> str:
    """Return the hash of what was applied last."""
    return str(manifest["metadata"].get("annotations", {}).get(APPLIED_ANNOTATION, ""))


def _unwanted(observed: Observed, desired: Desired) -> Iterator[Step]:
    """Yield the deletion of children that the Broker controls and does not want any more.

    Never of a claim: what is in it cannot be made again.
    """
    wanted = {key_of(manifest) for manifest in desired.children}
    for key, present in observed.children.items():
        controller = controller_of(present)
        own = controller is not None and controller["uid"] == desired.uid
        ends = "deletionTimestamp" in present["metadata"]
        if own and not ends and key not in wanted and key[0] != CLAIM:
            yield Delete(*key, present["metadata"]["uid"])
