"""Events of a Broker: what people are told of its plan and of its status."""

from collections.abc import Iterator, Sequence
from typing import Any, Literal

from lockkeeper_operator.brokers.bootstrapping import BOOTSTRAP_FAILED, BOOTSTRAPPING
from lockkeeper_operator.brokers.pods.claim_ends import CLAIM_ENDS
from lockkeeper_operator.brokers.pods.draining import MASTER_STAYS
from lockkeeper_operator.brokers.pods.scale_in import HANDING_OVER
from lockkeeper_operator.brokers.steps import DeletePod, Fence, Push, Step, SwitchOver
from lockkeeper_operator.kubernetes.children.steps import Apply, Conflict, Refused, Wait
from lockkeeper_operator.kubernetes.events import Event


def events_of_steps(steps: Sequence[Step]) -> Iterator[Event]:
    """Yield what is told when a plan is carried out; what everybody expects is not."""
    for step in steps:
        match step:
            case Apply(manifest, drift=True):
                what = f"{manifest['kind']} {manifest['metadata']['name']}"
                yield Event(
                    "Warning",
                    "DriftRepaired",
                    f"{what} was changed by somebody else; the operator restored it",
                )
            case Conflict(kind, name, owner):
                yield Event("Warning", "ChildConflict", f"{kind} {name} belongs to {owner}")
            case Refused(kind, name, message):
                yield Event("Warning", "ChildRefused", f"{kind} {name}: {message}")
            case DeletePod(name, _, reason):
                yield Event("Normal", "RollingStep", f"pod {name} restarts: {reason.lower()}")
            case SwitchOver(master, _, successor):
                yield Event(
                    "Normal",
                    "SwitchingOver",
                    f"master {master} stops, standby {successor} takes over",
                )
            case Push(pod, configuration):
                yield Event(
                    "Normal",
                    "ConfigurationPushed",
                    f"pod {pod} was given configuration {configuration}",
                )
            case Wait(reason, message) if reason in (HANDING_OVER, BOOTSTRAPPING):
                yield Event("Normal", reason, message)
            case Wait(reason, message) if reason in (CLAIM_ENDS, MASTER_STAYS, BOOTSTRAP_FAILED):
                yield Event("Warning", reason, message)
            case Fence(pod, fenced=True):
                yield Event(
                    "Warning", "Fenced", f"pod {pod} is fenced: it neither serves nor takes over"
                )
            case Fence(pod):
                yield Event("Normal", "Unfenced", f"pod {pod} is a standby again")
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
