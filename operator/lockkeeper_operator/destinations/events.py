"""Events of a Destination: what people are told of its steps."""

from typing import Any

from lockkeeper_operator.destinations.plan import Action, DestinationStep
from lockkeeper_operator.kubernetes.events import Event


def destination_event(
    step: DestinationStep, resource: dict[str, Any], removed: int = 0
) -> Event | None:
    """Return what is told of a step about a Destination, None for what everybody expects.

    It is a drift where the *resource*'s status said that all was well with the same spec.
    *removed* is how many messages a purge removed.
    """
    previous = resource.get("status", {})
    same = previous.get("observedGeneration") == resource["metadata"]["generation"]
    drifted = same and any(
        each["type"] == "InSync" and each["status"] == "True"
        for each in previous.get("conditions", ())
    )
    match step.action, step.reason:
        case Action.DECLARE, _ if drifted:
            return Event(
                "Warning",
                "DestinationDrift",
                "the broker had lost the destination; the operator declared it again",
            )
        case Action.SET_POLICY, _ if drifted:
            return Event(
                "Warning",
                "DestinationDrift",
                "the policy was changed on the broker; the operator restored it",
            )
        case Action.PURGE, _:
            return Event("Normal", "Purged", f"the broker removed {removed} messages")
        case Action.CLEAR_PURGE, "PurgeUnconfirmed":
            message = "nothing is purged: set the annotation to the name of the destination"
            return Event("Warning", "PurgeUnconfirmed", message)
        case Action.REMOVE | Action.REMOVE_IF_EMPTY, _:
            return Event("Normal", "Deleted", "the broker removed the destination")
        case Action.REMOVE_FINALIZER, "NotEmpty":
            return Event(
                "Warning",
                "NotEmpty",
                "the destination stays on the broker: it has messages or consumers",
            )
        case Action.REMOVE_FINALIZER, "BrokerUnreachable":
            message = "the destination stays on the broker, which has not answered for too long"
            return Event("Warning", "BrokerUnreachable", message)
        case _:
            return None
