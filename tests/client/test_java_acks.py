"""Our client says of messages what Java's says in the same case, frame by frame."""

from collections.abc import Iterator

import brokers
import java_project
import pytest
from ack_traffic import (
    CASES,
    JAVA_PROJECT,
    Javas,
    recorded,
    recorded_by,
    recorded_by_java,
    without_the_idle,
)
from client_support import Connect


@pytest.mark.parametrize("name", CASES)
def test_ours_says_what_javas_said(
    broker: brokers.RunningBroker, face: Connect, queue_name: str, name: str
) -> None:
    said = recorded_by(CASES[name], queue_name, broker, face)
    assert said == without_the_idle(recorded()[name])


@pytest.fixture(scope="module")
def javas() -> Iterator[Javas]:
    reason = java_project.missing()
    if reason:
        pytest.skip(reason)
    running = Javas(java_project.build(JAVA_PROJECT))
    yield running
    running.stop()


@pytest.mark.interop
@pytest.mark.thorough
@pytest.mark.parametrize("name", CASES)
def test_javas_still_says_what_was_recorded(
    javas: Javas, broker: brokers.RunningBroker, queue_name: str, name: str
) -> None:
    assert recorded_by_java(javas, CASES[name], queue_name, broker) == recorded()[name]
