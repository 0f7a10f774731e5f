from typing import Any

from lockkeeper_operator.brokers.events import events_of_status, events_of_steps
from lockkeeper_operator.brokers.steps import DeletePod, Push, SwitchOver
from lockkeeper_operator.kubernetes.children.steps import Apply, Conflict, Create, Wait

SERVICE: dict[str, Any] = {"kind": "Service", "metadata": {"name": "b-openwire"}}


def test_a_plan_tells_what_people_want_to_know() -> None:
    steps = (
        Create(SERVICE),
        Apply(SERVICE),
        Apply(SERVICE, drift=True),
        Conflict("Service", "b-x", "Broker other"),
        DeletePod("b-1", "u", "Outdated"),
        SwitchOver("b-0", "u", "b-1"),
        Push("b-0", "c"),
        Wait("PodStarts", "pods that are not ready: b-1"),
    )
    assert [(each.type, each.reason, each.message) for each in events_of_steps(steps)] == [
        (
            "Warning",
            "DriftRepaired",
            "Service b-openwire was changed by somebody else; the operator restored it",
        ),
        ("Warning", "ChildConflict", "Service b-x belongs to Broker other"),
        ("Normal", "RollingStep", "pod b-1 restarts: outdated"),
        ("Normal", "SwitchingOver", "master b-0 stops, standby b-1 takes over"),
        ("Normal", "ConfigurationPushed", "pod b-0 was given configuration c"),
    ]


def status(ready: str, cause: str | None = None) -> dict[str, Any]:
    failover = {"lastFailover": {"time": "t", "cause": cause}} if cause else {}
    condition = {"type": "Ready", "status": ready, "message": f"ready is {ready}"}
    return {"master": "b-1", "conditions": [condition], **failover}


def reasons(previous: dict[str, Any], following: dict[str, Any]) -> list[str]:
    return [event.reason for event in events_of_status(previous, following)]


def test_a_failover_is_told_once() -> None:
    before, after = status("True"), status("True", "b-0 is gone")
    (event,) = events_of_status(before, after)
    assert (event.type, event.reason) == ("Warning", "FailedOver")
    assert event.message == "b-1 is the master now: b-0 is gone"
    assert reasons(after, after) == []


def test_becoming_ready_and_ceasing_to_be_is_told() -> None:
    assert reasons({}, status("False")) == []
    assert reasons(status("False"), status("True")) == ["BecameReady"]
    assert reasons(status("True"), status("False")) == ["NotReady"]
