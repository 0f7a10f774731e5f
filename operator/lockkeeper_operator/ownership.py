"""Ownership of an object by a Broker."""

from lockkeeper_operator.names import INSTANCE_LABEL, MANAGED_BY_LABEL
from lockkeeper_operator.observed import Manifest


def controller_of(manifest: Manifest) -> Manifest | None:
    """Return the reference to the object that controls *manifest*, None if nothing does."""
    references = manifest["metadata"].get("ownerReferences", ())
    return next((each for each in references if each.get("controller")), None)


def stranger(present: Manifest, broker: str, uid: str) -> str:
    """Return who owns *present*, empty if it is the Broker called *broker* with that *uid*.

    What nothing controls is the Broker's if its labels say so: a claim that outlived a Broker of
    the same name, or a child that was orphaned on purpose.
    """
    controller = controller_of(present)
    if controller is not None:
        own = controller["uid"] == uid
        return "" if own else f"{controller['kind']} {controller['name']}"
    labels = present["metadata"].get("labels", {})
    own = labels.get(MANAGED_BY_LABEL) == "lockkeeper-operator"
    return "" if own and labels.get(INSTANCE_LABEL) == broker else "somebody else"
