"""What people are told as Kubernetes events, with reasons that never change their meaning."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from lockkeeper_operator.steps import Apply, Conflict, DeletePod, Push, Step, SwitchOver


@dataclass(frozen=True, slots=True)
class Event:
    """One event: of note or not, one word for tools, a sentence for people."""

    type: Literal["Normal", "Warning"]
    reason: str
    message: str


def events_of_steps(steps: Sequence[Step]) -> Iterator[Event]:
    """Yield what is told when a plan is carried out; what everybody expects is not."""
    for step in steps:
        match step:
            case Apply(manifest, drift=True):
                what = f"{manifest['kind']} {manifest['metadata']['name']}"
                yield Event("Warning", "DriftRepaired", f"{what} was changed by somebody else")
            case Conflict(kind, name, owner):
                yield Event("Warning", "ChildConflict", f"{kind} {name} belongs to {owner}")
            case DeletePod(name, _, reason):
                yield Event("Normal", "RollingStep", f"{name} starts anew: {reason.lower()}")
            case SwitchOver(master, _, successor):
                yield Event("Normal", "SwitchingOver", f"{master} stops, {successor} takes over")
            case Push(pod, configuration):
                yield Event("Normal", "ConfigurationPushed", f"{configuration} to {pod}")
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
