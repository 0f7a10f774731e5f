"""Steps that bring the children of a resource to what they are to be."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from lockkeeper_operator.kubernetes.children.claims import grown
from lockkeeper_operator.kubernetes.children.comparing import Path, added, covers
from lockkeeper_operator.kubernetes.children.ownership import Owner, controller_of, stranger
from lockkeeper_operator.kubernetes.children.steps import (
    Apply,
    Conflict,
    Create,
    Delete,
    Refused,
    Step,
    Wait,
)
from lockkeeper_operator.kubernetes.hashes import hash_of
from lockkeeper_operator.kubernetes.manifests import Key, Manifest, key_of
from lockkeeper_operator.names import APPLIED_ANNOTATION

CLAIM = "PersistentVolumeClaim"
CHILD_ENDS = "ChildEnds"


@dataclass(frozen=True, slots=True)
class Children:
    """What there is of them, by kind and name.

    *stuck* are those that could not be brought to what they are to be, when that was tried last;
    *tolerated* is what is in them against our will, and comes back however often it is removed;
    *answers* are what the API server made of what was asked for.
    """

    present: Mapping[Key, Manifest] = field(default_factory=dict)
    stuck: Mapping[Key, Conflict | Refused] = field(default_factory=dict)
    tolerated: Mapping[Key, frozenset[Path]] = field(default_factory=dict)
    answers: Mapping[Key, Manifest] = field(default_factory=dict)


def child_steps(owner: Owner, wanted: Collection[Manifest], children: Children) -> Iterator[Step]:
    """Yield the steps; none if all children are as they are *wanted*."""
    for manifest in wanted:
        key = key_of(manifest)
        step = _step(children, key, manifest, owner)
        if isinstance(step, Create | Apply):
            step = children.stuck.get(key, step)
        if step is not None:
            yield step
    yield from _unwanted(owner, {key_of(manifest) for manifest in wanted}, children.present)


def stamped(manifest: Manifest) -> Manifest:
    """Return *manifest* with the hash of itself, which tells later what was applied."""
    metadata = manifest["metadata"]
    notes = {**metadata.get("annotations", {}), APPLIED_ANNOTATION: hash_of(manifest)}
    return {**manifest, "metadata": {**metadata, "annotations": notes}}


def _step(children: Children, key: Key, wanted: Manifest, owner: Owner) -> Step | None:
    """Return what is to be done about one child that is wanted."""
    present = children.present.get(key)
    if present is None:
        return Create(stamped(wanted))
    kind, name = key
    if "deletionTimestamp" in present["metadata"]:
        return Wait(CHILD_ENDS, f"{kind} {name} is being deleted")
    other = stranger(present, owner)
    if other:
        return Conflict(kind, name, other)
    if kind == CLAIM:
        wanted = grown(present, wanted)
    wanted = stamped(wanted)
    tolerated = children.tolerated.get(key, frozenset())
    goal = _made_of(wanted, children.answers.get(key))
    if covers(present, goal) and added(present, wanted) <= tolerated:
        return None
    return Apply(wanted, drift=_applied(present) == _applied(wanted))


def _made_of(wanted: Manifest, answer: Manifest | None) -> Manifest:
    """Return what the API server makes of *wanted*, as far as an *answer* tells."""
    return wanted if answer is None or _applied(answer) != _applied(wanted) else answer


def _applied(manifest: Manifest) -> str:
    """Return the hash of what was applied last."""
    return str(manifest["metadata"].get("annotations", {}).get(APPLIED_ANNOTATION, ""))


def _unwanted(
    owner: Owner, wanted: Collection[Key], children: Mapping[Key, Manifest]
) -> Iterator[Step]:
    """Yield the deletion of children that the owner controls and does not want any more.

    Never of a claim: what is in it cannot be made again.
    """
    for key, present in children.items():
        controller = controller_of(present)
        own = controller is not None and controller["uid"] == owner.uid
        ends = "deletionTimestamp" in present["metadata"]
        if own and not ends and key not in wanted and key[0] != CLAIM:
            yield Delete(*key, present["metadata"]["uid"])
