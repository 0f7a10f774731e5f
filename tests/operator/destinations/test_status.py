from typing import Any

import pytest

from lockkeeper_operator.destinations.status.facts import DestinationFacts, Figures
from lockkeeper_operator.destinations.status.status import destination_status

NOW, LATER = "2027-03-01T12:00:00Z", "2027-03-01T12:05:00Z"
FIGURES = Figures(depth=3, consumers=1, enqueued=10, dequeued=7, oldest_age="5m")


def facts(**changes: Any) -> DestinationFacts:
    given: dict[str, Any] = {"figures": FIGURES, "in_sync": True, **changes}
    return DestinationFacts("ORDERS", "main", **given)


def conditions(found: DestinationFacts) -> dict[str, tuple[str, str]]:
    status = destination_status(found, {}, 1, NOW)
    assert status is not None
    return {each["type"]: (each["status"], each["reason"]) for each in status["conditions"]}


def test_a_destination_that_is_there_shows_its_figures() -> None:
    status = destination_status(facts(), {}, 1, NOW)
    assert status is not None
    assert {name: status[name] for name in status if name != "conditions"} == {
        "observedGeneration": 1,
        "name": "ORDERS",
        "depth": 3,
        "consumers": 1,
        "enqueued": 10,
        "dequeued": 7,
        "oldestMessageAge": "5m",
    }
    assert destination_status(facts(), status, 1, LATER) is None


@pytest.mark.parametrize(
    ("changes", "accepted", "in_sync", "ready"),
    [
        ({}, ("True", "Accepted"), ("True", "InSync"), ("True", "InSync")),
        ({"in_sync": False}, ("True", "Accepted"), ("False", "PolicyDiffers"),
         ("False", "PolicyDiffers")),
        ({"figures": None}, ("True", "Accepted"), ("False", "Missing"), ("False", "Missing")),
        ({"broker_answers": False}, ("True", "Accepted"), ("Unknown", "BrokerUnavailable"),
         ("Unknown", "BrokerUnavailable")),
        ({"broker_there": False}, ("False", "BrokerNotFound"), ("Unknown", "NotAccepted"),
         ("False", "BrokerNotFound")),
        ({"allowed": False}, ("False", "NotAllowed"), ("Unknown", "NotAccepted"),
         ("False", "NotAllowed")),
        ({"holder": "older"}, ("False", "NameTaken"), ("Unknown", "NotAccepted"),
         ("False", "NameTaken")),
        ({"foreign": True}, ("False", "AlreadyThere"), ("Unknown", "NotAccepted"),
         ("False", "AlreadyThere")),
    ],
)  # fmt: skip
def test_each_state_has_its_conditions(
    changes: dict[str, Any],
    accepted: tuple[str, str],
    in_sync: tuple[str, str],
    ready: tuple[str, str],
) -> None:
    assert conditions(facts(**changes)) == {
        "Ready": ready, "Accepted": accepted, "InSync": in_sync,
    }  # fmt: skip
