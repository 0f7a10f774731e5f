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
            return Event("Warning", "DestinationDrift", "the broker had lost it; made again")
        case Action.SET_POLICY, _ if drifted:
            return Event("Warning", "DestinationDrift", "its policy was changed behind its back")
        case Action.PURGE, _:
            return Event("Normal", "Purged", f"{removed} messages are removed")
        case Action.CLEAR_PURGE, "PurgeUnconfirmed":
            message = "nothing is purged: the annotation's value is not the destination's name"
            return Event("Warning", "PurgeUnconfirmed", message)
        case Action.REMOVE | Action.REMOVE_IF_EMPTY, _:
            return Event("Normal", "Deleted", "removed from the broker")
        case Action.REMOVE_FINALIZER, "NotEmpty":
            return Event("Warning", "NotEmpty", "stays on the broker: it has messages or consumers")
        case Action.REMOVE_FINALIZER, "BrokerUnreachable":
            message = "stays on the broker, which has not answered for too long"
            return Event("Warning", "BrokerUnreachable", message)
        case _:
            return None
