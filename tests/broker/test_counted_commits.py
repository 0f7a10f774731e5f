"""Lines of the flight recorder count what stands before them in the journal, and nothing else."""

import json
from typing import TYPE_CHECKING, Any, cast

from lockkeeper.message.openwire import AckType
from lockkeeper.server.recorder import PREFIX, FlightRecorder
from lockkeeper.store.base import Store
from lockkeeper_api.broker import Recorder

if TYPE_CHECKING:
    from conftest import Bench

NAMES = ("queue://Q", "queue://OTHER", "topic://T")


class Lines:
    """The figures of all lines of a recorder, the last ones of each destination."""

    def __init__(self, bench: "Bench") -> None:
        self._bench = bench
        self._told: dict[str, Any] = {}
        self._recorder = FlightRecorder(bench.broker, cast(Store, self), Recorder())

    def trace(self, text: str) -> None:
        """See `Store.trace`."""
        self._told |= json.loads(text.removeprefix(PREFIX))["destinations"]

    def counted(self) -> list[tuple[int, int, int]]:
        """Return what came and what ended in each destination, and how many latencies it has."""
        self._recorder.write_statistics(self._bench.now)
        told = [self._told.get(name) for name in NAMES]
        return [
            (each["enqueued"], each["dequeued"], sum(each["latency"]["n"])) if each else (0, 0, 0)
            for each in told
        ]

    def latencies(self) -> dict[int, int]:
        """Return how many messages of Q were acknowledged within so many ms."""
        self._recorder.write_statistics(self._bench.now)
        latency = self._told["queue://Q"]["latency"]
        return {most: n for most, n in zip(latency["le"], latency["n"], strict=True) if n}

    def depth(self) -> int:
        """Return how many messages are in Q."""
        self._recorder.write_statistics(self._bench.now)
        depth: int = self._told["queue://Q"]["depth"]
        return depth


def test_commits_that_are_being_written_are_counted(bench: "Bench") -> None:
    client, lines = bench.client(), Lines(bench)
    transactions = bench.broker.transactions
    consumer = client.consume("Q")
    subscriber = client.consume("topic://T", subscription_name="lasting")
    identifier = client.begin(1)
    for name in ("Q", "Q", "OTHER", "topic://T"):
        client.send(name, "sent", transaction_id=identifier)
    assert lines.counted() == [(0, 0, 0), (0, 0, 0), (0, 0, 0)]
    transactions.commit(client.connection, identifier, None)
    came = [(2, 0, 0), (1, 0, 0), (1, 0, 0)]
    assert lines.counted() == came
    bench.tick()
    assert lines.counted() == came
    deliveries = client.deliveries()
    identifier = client.begin(2)
    for each, count in ((consumer, 2), (subscriber, 1)):
        (*_, last) = [one for one in deliveries if one.consumer is each]
        transactions.acknowledge(
            client.connection, each, identifier, last.message.sequence, count, AckType.STANDARD
        )
    client.send("Q", "sent", transaction_id=identifier)
    assert lines.counted() == came
    transactions.commit(client.connection, identifier, None)
    over = [(3, 2, 2), (1, 0, 0), (1, 1, 1)]
    assert lines.counted() == over
    bench.tick()
    assert lines.counted() == over


def test_latencies_are_those_of_the_commit_however_long_the_disk_takes(bench: "Bench") -> None:
    client, lines = bench.client(), Lines(bench)
    consumer = client.consume("Q")
    for text in ("one", "two"):
        client.send("Q", text, broker_in_time=bench.now)
    first, second = client.deliveries(consumer)
    identifier = client.begin()
    bench.broker.transactions.acknowledge(
        client.connection, consumer, identifier, first.message.sequence, 1, AckType.STANDARD
    )
    bench.tick(5)
    bench.broker.transactions.commit(client.connection, identifier, None)
    before = lines.latencies()
    # The disk takes 40 ms.
    bench.tick(40)
    assert before == lines.latencies() == {7: 1}
    client.acknowledge(consumer, second.message)
    assert lines.latencies() == {7: 1, 63: 1}


def test_depth_goes_with_what_came_and_what_ended(bench: "Bench") -> None:
    client, lines = bench.client(), Lines(bench)
    transactions = bench.broker.transactions
    consumer = client.consume("Q")
    for number, depth in ((1, 5), (2, 7)):
        identifier = client.begin(number)
        for _ in range(5):
            client.send("Q", "sent", transaction_id=identifier)
        if number == 2:
            *_, last = client.deliveries(consumer)[:3]
            transactions.acknowledge(
                client.connection, consumer, identifier, last.message.sequence, 3, AckType.STANDARD
            )
        transactions.commit(client.connection, identifier, None)
        assert lines.depth() == depth
        bench.tick()
        assert lines.depth() == depth
