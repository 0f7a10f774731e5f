"""Durable subscriptions to wildcards in any order of events, over a real journal, with restarts.

What must wait where is kept beside it in plain lists; after each restart both must be equal, and
so must the journal's accounts and a recount.
"""

import random
from typing import TYPE_CHECKING

import pytest

from lockkeeper.message.destination import path_matches, topic
from lockkeeper.message.openwire import AckType
from lockkeeper.message.rewrite import decoded
from lockkeeper.store.kahadb import KahaDBStore
from lockkeeper.store.kahadb.audit import differences

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Bench, Client

    from lockkeeper.broker.subscriptions.consumer import Consumer
    from lockkeeper.message.message import Message

TOPICS = ("A", "A.B", "A.C", "A.B.C", "D")
WANTED = ("A.>", "A.*", "A.B", ">", "D,A.*", "A.B,A.C", "*.C")
SUBSCRIBERS = ("one", "two", "three")
STEPS = 60
RESTARTS = 3
SEEDS = 12
FILE_BYTES = 1 << 16
CLEANUP_MS = 1000


def stands_for(wanted: str, name: str) -> bool:
    """Tell whether a wildcard, or a list of such, stands for a topic."""
    path = topic(name).path
    return any(path_matches(topic(part).path, path) for part in wanted.split(","))


def text_of(message: "Message") -> str:
    """Return the text of a text message, without the spaces that make it long."""
    return (decoded(message).content or b"")[4:].decode().strip()


class Journey:
    """A broker over a directory, and what its subscriptions should have.

    `waiting` has the numbers of messages by subscriber and topic, `wanted` what each asked for.
    """

    def __init__(self, make_bench: "type[Bench]", directory: "Path", seed: int) -> None:
        self._make_bench = make_bench
        self._directory = directory
        self.chance = random.Random(seed)
        self.wanted: dict[str, str] = {}
        self.existing: set[str] = set()
        self.waiting: dict[str, dict[str, list[str]]] = {}
        self.online: dict[str, tuple[Client, Consumer]] = {}
        self._sent = 0
        self.open()

    def open(self) -> None:
        """Start a broker on the directory."""
        self.store = KahaDBStore(
            self._directory,
            clock=lambda: self._sent * 100,
            file_bytes_max=FILE_BYTES,
            cleanup_interval_ms=CLEANUP_MS,
        )
        self.bench = self._make_bench(self.store)
        self.bench.tick()
        self.sender = self.bench.client()

    # What happens

    def send(self) -> None:
        """Send a message: every subscription that stands for its topic gets it."""
        name = self.chance.choice(TOPICS)
        self.existing.add(name)
        self._sent += 1
        text = str(self._sent)
        self.sender.send(f"topic://{name}", text.ljust(self.chance.choice((10, 3000))))
        for subscriber, wanted in self.wanted.items():
            if stands_for(wanted, name):
                self.waiting[subscriber].setdefault(name, []).append(text)
        self.store.maintain(self._sent * 100)

    def come(self) -> None:
        """Let a subscriber come, who may want something else than before."""
        subscriber = self.chance.choice(SUBSCRIBERS)
        if subscriber in self.online:
            return
        wanted = self.wanted.get(subscriber)
        if wanted is None or self.chance.random() < 0.2:
            wanted = self.chance.choice(WANTED)
        self.attach(subscriber, wanted)

    def attach(self, subscriber: str, wanted: str) -> None:
        """Let a subscriber come for *wanted*."""
        if self.wanted.get(subscriber) != wanted:
            self.waiting[subscriber] = {}
        self.wanted[subscriber] = wanted
        parts = wanted.split(",")
        self.existing.update(part for part in parts if not topic(part).is_pattern)
        client = self.bench.client(subscriber)
        consumer = client.consume(
            f"topic://{wanted}", prefetch=self.chance.choice((1, 3, 100)), subscription_name="sub"
        )
        self.online[subscriber] = (client, consumer)

    def take(self) -> None:
        """Let a subscriber acknowledge some of what it was sent, one by one or many at once."""
        if not self.online:
            return
        subscriber = self.chance.choice(sorted(self.online))
        client, consumer = self.online[subscriber]
        client.outputs()
        held = [reference.loaded for reference in consumer.dispatched.values()]
        count = self.chance.randint(0, len(held))
        if not count:
            return
        done = held[:count]
        if self.chance.random() < 0.5:
            client.acknowledge(consumer, done[-1], count)
        else:
            self.chance.shuffle(done)
            for message in done:
                client.acknowledge(consumer, message, kind=AckType.INDIVIDUAL)
        for message in done:
            self.waiting[subscriber][message.destination.name].remove(text_of(message))

    def go(self) -> None:
        """Let a subscriber go."""
        if self.online:
            subscriber = self.chance.choice(sorted(self.online))
            client, _ = self.online.pop(subscriber)
            client.leave()

    def forget(self) -> None:
        """Delete the subscription of somebody who is away."""
        away = sorted(self.wanted.keys() - self.online.keys())
        if away:
            subscriber = self.chance.choice(away)
            self.bench.broker.subscriptions.lasting.forget(subscriber, "sub", None)
            del self.wanted[subscriber], self.waiting[subscriber]
            self.bench.tick()

    def restart(self) -> None:
        """Close and open, and compare everything."""
        self.bench.tick()
        assert differences(self._directory, self.store._file_references) == []
        self.store.close()
        self.online.clear()
        # What stands for no topic that there is is not stored.
        self.wanted = {
            subscriber: wanted
            for subscriber, wanted in self.wanted.items()
            if any(stands_for(wanted, name) for name in self.existing)
        }
        self.existing = {
            name
            for name in self.existing
            if any(stands_for(wanted, name) for wanted in self.wanted.values())
        }
        self.open()
        assert differences(self._directory, self.store._file_references) == []
        self.compare()

    def compare(self) -> None:
        """Hold what is there against what should be: nothing is acknowledged."""
        groups = self.bench.broker.subscriptions.durables
        assert sorted(groups) == sorted(f"{subscriber}:sub" for subscriber in self.wanted)
        for subscriber, wanted in self.wanted.items():
            client = self.bench.client(subscriber)
            consumer = client.consume(f"topic://{wanted}", prefetch=10_000, subscription_name="sub")
            found: dict[str, list[str]] = {}
            for delivery in client.deliveries(consumer):
                message = delivery.message
                found.setdefault(message.destination.name, []).append(text_of(message))
            expected = {name: texts for name, texts in self.waiting[subscriber].items() if texts}
            assert found == expected, subscriber
            client.leave()


@pytest.mark.parametrize("seed", range(SEEDS))
def test_what_waits_is_what_should(make_bench: "type[Bench]", tmp_path: "Path", seed: int) -> None:
    journey = Journey(make_bench, tmp_path, seed)
    send, take = journey.send, journey.take
    steps = (send, send, send, take, take, journey.come, journey.go, journey.forget)
    for _ in range(RESTARTS):
        for _ in range(STEPS):
            journey.chance.choice(steps)()
        journey.restart()
    journey.store.close()
