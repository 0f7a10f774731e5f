"""The flight recorder notes what changed, of very many destinations a part at a time."""

import json
from typing import Any

import pytest

from lockkeeper.broker.core import Broker
from lockkeeper.broker.policies.policy import PolicyMap
from lockkeeper.broker.settings import BrokerSettings
from lockkeeper.message.destination import queue
from lockkeeper.server.recorder import DESTINATIONS_AT_ONCE_MAX, PREFIX, FlightRecorder
from lockkeeper.store.memory import MemoryStore
from lockkeeper_api.broker import Recorder

START = 1_700_000_000_000
INTERVAL = 10_000
PARTS = 3
NAMES = [f"Q.{number}" for number in range(DESTINATIONS_AT_ONCE_MAX * (PARTS - 1) + 1)]


class Scene(MemoryStore):
    """A broker with very many queues, whose recorder writes here."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[dict[str, Any]] = []
        self.broker = Broker(self, "b", "ID:b", PolicyMap([]), BrokerSettings(), START)
        self.broker.recover()
        self.recorder = FlightRecorder(self.broker, self, Recorder())
        for name in NAMES:
            self.broker.registry.ensure_queue(self.broker.context, queue(name))

    def trace(self, text: str) -> None:
        self.lines.append(json.loads(text.removeprefix(PREFIX)))

    def look(self, later: int = INTERVAL) -> int:
        """Let the recorder have one turn after some time; return how many there were in all."""
        self.broker.tick(self.broker.now + later)
        turns = 1
        while self.recorder.write_due_statistics(self.broker.now):
            turns += 1
        return turns

    def told(self) -> dict[str, Any]:
        """Return the figures of all lines since the last call."""
        lines, self.lines = self.lines, []
        assert all(line["t"] == "stats" for line in lines)
        assert all(len(line["destinations"]) <= DESTINATIONS_AT_ONCE_MAX for line in lines)
        return {name: each for line in lines for name, each in line["destinations"].items()}


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_each_turn_has_its_part(scene: Scene) -> None:
    assert scene.look() == PARTS
    assert [*scene.told()] == [f"queue://{name}" for name in NAMES]
    assert scene.look(INTERVAL - 1) == 1
    assert scene.look(1) == PARTS
    assert scene.told() == {}


def test_only_what_changed_is_told_again(scene: Scene) -> None:
    scene.look()
    scene.told()
    changed = scene.broker.registry.find_queue(queue("Q.7"))
    assert changed is not None
    changed.statistics.expired += 1
    scene.look()
    told = scene.told()
    assert [*told] == ["queue://Q.7"]
    assert told["queue://Q.7"]["expired"] == 1
    assert sum(told["queue://Q.7"]["latency"]["n"]) == 0


def test_a_stop_tells_all_that_is_left(scene: Scene) -> None:
    scene.broker.tick(scene.broker.now + INTERVAL)
    assert scene.recorder.write_due_statistics(scene.broker.now)
    some = scene.told()
    scene.recorder.write_statistics(scene.broker.now)
    assert {*some, *scene.told()} == {f"queue://{name}" for name in NAMES}
    assert len(some) == DESTINATIONS_AT_ONCE_MAX


def test_a_destination_that_is_gone_is_told_and_kept_no_more(scene: Scene) -> None:
    """Temporary queues come and go for as long as the broker lives."""
    scene.look()
    scene.broker.tick(scene.broker.now + INTERVAL)
    scene.recorder.write_due_statistics(scene.broker.now)
    scene.broker.registry.forget(queue(NAMES[-1]))
    scene.told()
    scene.look(0)
    assert scene.told() == {}
    scene.look()
    assert scene.told() == {}
    assert len(scene.recorder._written) == len(NAMES) - 1
