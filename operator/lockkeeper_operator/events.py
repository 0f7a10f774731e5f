"""Kubernetes events for people, with reasons that never change their meaning."""

from collections.abc import Iterator, Sequence
from typing import Any, Literal

from lockkeeper_operator.destination_plan import Action, DestinationStep
from lockkeeper_operator.draining import MASTER_STAYS
from lockkeeper_operator.kubernetes.children.steps import Apply, Conflict, Refused, Wait
from lockkeeper_operator.kubernetes.events import Event
from lockkeeper_operator.scale_in import HANDING_OVER
from lockkeeper_operator.steps import DeletePod, Fence, Push, Step, SwitchOver


def events_of_steps(steps: Sequence[Step]) -> Iterator[Event]:
    """Yield what is told when a plan is carried out; what everybody expects is not."""
    for step in steps:
        match step:
            case Apply(manifest, drift=True):
                what = f"{manifest['kind']} {manifest['metadata']['name']}"
                yield Event("Warning", "DriftRepaired", f"{what} was changed by somebody else")
            case Conflict(kind, name, owner):
                yield Event("Warning", "ChildConflict", f"{kind} {name} belongs to {owner}")
            case Refused(kind, name, message):
                yield Event("Warning", "ChildRefused", f"{kind} {name}: {message}")
            case DeletePod(name, _, reason):
                yield Event("Normal", "RollingStep", f"{name} starts anew: {reason.lower()}")
            case SwitchOver(master, _, successor):
                yield Event("Normal", "SwitchingOver", f"{master} stops, {successor} takes over")
            case Push(pod, configuration):
                yield Event("Normal", "ConfigurationPushed", f"{configuration} to {pod}")
            case Wait(reason, message) if reason == HANDING_OVER:
                yield Event("Normal", reason, message)
            case Wait(reason, message) if reason == MASTER_STAYS:
                yield Event("Warning", reason, message)
            case Fence(pod, fenced=True):
                yield Event("Warning", "Fenced", f"{pod} neither serves nor takes over")
            case Fence(pod):
                yield Event("Normal", "Unfenced", f"{pod} stands by again")
            case _:
                pass


def events_of_status(previous: dict[str, Any], status: dict[str, Any]) -> Iterator[Event]:
    """Yield what is told when *status* takes the place of *previous*."""
    failover = status.get("lastFailover")
    if failover is not None and failover != previous.get("lastFailover"):
        message = f"{status.get('master')} is the master now: {failover['cause']}"
        yield Event("Warning", "FailedOver", message)
    before = {each["type"]: each["status"] for each in previous.get("conditions", ())}
    for condition in status.get("conditions", ()):
        was, now = before.get(condition["type"]), condition["status"]
        if condition["type"] == "Ready" and was is not None and was != now:
            known: tuple[Literal["Normal", "Warning"], str] = (
                ("Normal", "BecameReady") if now == "True" else ("Warning", "NotReady")
            )
            yield Event(*known, condition["message"])


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
