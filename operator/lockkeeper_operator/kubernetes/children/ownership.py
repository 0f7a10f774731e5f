"""Ownership of an object by the resource that it is a child of."""

from dataclasses import dataclass

from lockkeeper_operator.kubernetes.manifests import Manifest
from lockkeeper_operator.names import INSTANCE_LABEL, MANAGED_BY_LABEL


@dataclass(frozen=True, slots=True)
class Owner:
    """The resource that controls the children; they are labelled with its *instance*."""

    instance: str
    uid: str


def controller_of(manifest: Manifest) -> Manifest | None:
    """Return the reference to the object that controls *manifest*, None if nothing does."""
    references = manifest["metadata"].get("ownerReferences", ())
    return next((each for each in references if each.get("controller")), None)


def stranger(present: Manifest, owner: Owner) -> str:
    """Return who owns *present*, empty if it is *owner*.

    What nothing controls is the owner's if its labels say so: a claim that outlived a Broker of
    the same name, or a child that was orphaned on purpose.
    """
    controller = controller_of(present)
    if controller is not None:
        own = controller["uid"] == owner.uid
        return "" if own else f"{controller['kind']} {controller['name']}"
    labels = present["metadata"].get("labels", {})
    own = labels.get(MANAGED_BY_LABEL) == "lockkeeper-operator"
    return "" if own and labels.get(INSTANCE_LABEL) == owner.instance else "somebody else"
