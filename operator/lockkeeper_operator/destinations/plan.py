"""From what there is of a Destination to the next step.

A finalizer is there only where the deletion policy needs the broker's help, and never keeps a
resource for ever: it goes when the Broker or its namespace goes, when the broker was silent for
too long, and when the policy is changed to Retain, also while the resource is being deleted.
"""

from dataclasses import dataclass
from enum import Enum

from lockkeeper_operator.destinations.observed import BrokerState, DestinationState

FINALIZER = "lockkeeper.dev/destination"


class Action(Enum):
    """What can be done about a Destination."""

    ADD_FINALIZER = "AddFinalizer"
    REMOVE_FINALIZER = "RemoveFinalizer"
    DECLARE = "Declare"
    """Make it on the broker, with its policy; done already is no error."""
    SET_POLICY = "SetPolicy"
    REMOVE = "Remove"
    """Remove it from the broker, messages and all."""
    REMOVE_IF_EMPTY = "RemoveIfEmpty"
    """Remove it unless it has messages or consumers; the broker decides, at that moment."""
    CLEAR_PURGE = "ClearPurge"
    """Take the annotation away."""
    PURGE = "Purge"
    WAIT = "Wait"


@dataclass(frozen=True, slots=True)
class DestinationStep:
    """One action, and why, as one word for events."""

    action: Action
    reason: str


def destination_plan(state: DestinationState) -> tuple[DestinationStep, ...]:
    """Return the next steps, in order; none when all is as it is to be."""
    return _ending(state) if state.deleting else _living(state)


def _ending(state: DestinationState) -> tuple[DestinationStep, ...]:
    """Return the steps about a resource that is being deleted."""
    if not state.finalizer:
        return ()
    if state.policy == "Retain":
        return _release("Retained")
    if state.broker is BrokerState.GONE:
        return _release("BrokerGone")
    if not state.accepted:
        return _release("NeverAccepted")
    if state.broker is BrokerState.SILENT:
        return (DestinationStep(Action.WAIT, "BrokerUnavailable"),)
    if state.broker is BrokerState.LOST:
        return _release("BrokerUnreachable")
    if not state.exists:
        return _release("Removed")
    if state.policy == "Delete":
        return (DestinationStep(Action.REMOVE, "Deleted"),)
    if not state.empty:
        return _release("NotEmpty")
    return (DestinationStep(Action.REMOVE_IF_EMPTY, "Deleted"),)


def _release(reason: str) -> tuple[DestinationStep, ...]:
    return (DestinationStep(Action.REMOVE_FINALIZER, reason),)


def _living(state: DestinationState) -> tuple[DestinationStep, ...]:
    """Return the steps about a resource that is to stay."""
    needs_finalizer = state.policy != "Retain" and state.accepted
    if state.finalizer and not needs_finalizer:
        return _release("NotNeeded")
    if not state.accepted or state.broker is BrokerState.GONE:
        return ()
    if needs_finalizer and not state.finalizer:
        # Before there is anything to be removed later.
        return (DestinationStep(Action.ADD_FINALIZER, "Needed"),)
    if state.broker in (BrokerState.SILENT, BrokerState.LOST):
        return (DestinationStep(Action.WAIT, "BrokerUnavailable"),)
    if not state.exists:
        return (DestinationStep(Action.DECLARE, "DestinationMissing"),)
    if not state.in_sync:
        return (DestinationStep(Action.SET_POLICY, "DestinationDrift"),)
    return _purging(state)


def _purging(state: DestinationState) -> tuple[DestinationStep, ...]:
    """Return the steps about a purge that somebody asks for.

    The annotation goes first: an operator that is killed in between has purged nothing, where the
    other order would purge again what came since.
    """
    if state.purge is None:
        return ()
    if state.purge != state.name:
        return (DestinationStep(Action.CLEAR_PURGE, "PurgeUnconfirmed"),)
    return (
        DestinationStep(Action.CLEAR_PURGE, "PurgeConfirmed"),
        DestinationStep(Action.PURGE, "Purged"),
    )
