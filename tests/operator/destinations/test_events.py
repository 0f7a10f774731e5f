import pytest

from lockkeeper_operator.destinations.events import destination_event
from lockkeeper_operator.destinations.plan import Action, DestinationStep


def destination(generation: int = 3, **condition: str) -> dict[str, object]:
    in_sync = {"type": "InSync", "status": "True", **condition}
    status = {"observedGeneration": 3, "conditions": [in_sync]}
    return {"metadata": {"generation": generation}, "status": status}


@pytest.mark.parametrize(
    ("action", "reason", "resource", "expected"),
    [
        (Action.DECLARE, "DestinationMissing", destination(), "DestinationDrift"),
        (Action.DECLARE, "DestinationMissing", destination(status="Unknown"), None),
        (Action.DECLARE, "DestinationMissing", {"metadata": {"generation": 1}}, None),
        (Action.SET_POLICY, "DestinationDrift", destination(), "DestinationDrift"),
        (Action.SET_POLICY, "DestinationDrift", destination(generation=4), None),
        (Action.REMOVE, "Deleted", destination(), "Deleted"),
        (Action.REMOVE_FINALIZER, "NotEmpty", destination(), "NotEmpty"),
        (Action.REMOVE_FINALIZER, "BrokerUnreachable", destination(), "BrokerUnreachable"),
        (Action.REMOVE_FINALIZER, "Retained", destination(), None),
        (Action.CLEAR_PURGE, "PurgeUnconfirmed", destination(), "PurgeUnconfirmed"),
        (Action.PURGE, "Purged", destination(), "Purged"),
    ],
)
def test_of_a_destination_only_what_nobody_expects_is_told(
    action: Action, reason: str, resource: dict[str, object], expected: str | None
) -> None:
    found = destination_event(DestinationStep(action, reason), resource, removed=3)
    assert (found and found.reason) == expected
