"""Queues stay while the broker's own messages for them are being written; by hand they go."""

from pathlib import Path

import pytest
from streams_kit import START, DiskBench

from lockkeeper.broker.core import Broker
from lockkeeper.broker.policies.inactivity import InactivityPolicy
from lockkeeper.broker.policies.policy import DestinationPolicy, PolicyEntry, PolicyMap
from lockkeeper.broker.settings import BrokerSettings
from lockkeeper.broker.streams.settings import StreamSettings
from lockkeeper.message.destination import Destination, queue
from lockkeeper.message.rewrite import decoded
from lockkeeper.server.declarations import is_in_use

BILLING, WILD = queue("billing"), queue("Consumer.billing.orders")
FED = {
    BILLING: StreamSettings(1, to_queues=("billing",)),
    WILD: StreamSettings(1, to_queues=("Consumer.*.orders",)),
}
PERIOD, TIMEOUT = 1_000, 3_000
SWEPT = DestinationPolicy(inactivity=InactivityPolicy(True, TIMEOUT))


class SweptBench(DiskBench):
    """A core on a directory that removes what nobody uses."""

    def begin(self) -> None:
        """Start the broker on its store."""
        settings = BrokerSettings(
            streams=self.settings, schedule_period_for_destination_purge=PERIOD
        )
        policies = PolicyMap([PolicyEntry(">", None, SWEPT)])
        self.broker = Broker(self.store, "test", "ID:test", policies, settings, self.now)
        self.broker.recover()
        self.broker.tick(self.now)

    def idle(self, time: int) -> None:
        """Let time pass, a sweep at a time, while the disk is at a write."""
        for _ in range(time // PERIOD):
            self.now += PERIOD
            self.broker.tick(self.now)

    def bodies_in(self, destination: Destination) -> list[bytes]:
        """Return the bodies of what waits in a queue; none where there is no queue."""
        region = self.broker.registry.find_queue(destination)
        waiting = [] if region is None else list(region.waiting())
        self.store.load(waiting, self.broker.context.next_sequence(len(waiting) + 1))
        return [decoded(reference.loaded).content or b"" for reference in waiting]


@pytest.fixture
def swept(tmp_path: Path) -> SweptBench:
    return SweptBench(tmp_path / "kahadb")


def begin_feeding(bench: SweptBench, destination: Destination) -> None:
    """Have a feed write a message to a queue that was idle for long, and not be answered yet."""
    client, broker = bench.connect(), bench.broker
    broker.streams.declare("orders", FED[destination])
    broker.registry.ensure_queue(broker.context, destination)
    bench.idle(TIMEOUT)
    assert broker.registry.find(destination) is not None
    bench.append(client, "orders", "paid")
    broker.tick(bench.now)
    assert bench.store.usage().waiting_operations
    assert bench.bodies_in(destination) == []


@pytest.mark.parametrize("destination", FED)
def test_a_sweep_leaves_a_queue_that_a_feed_is_writing_to(
    swept: SweptBench, destination: Destination
) -> None:
    begin_feeding(swept, destination)
    swept.idle(PERIOD)
    swept.settle()
    assert swept.bodies_in(destination) == [b"paid"]
    swept.crash()
    swept.settle()
    assert swept.bodies_in(destination) == [b"paid"]


def test_a_queue_that_was_fed_goes_once_it_is_idle_again(swept: SweptBench) -> None:
    begin_feeding(swept, BILLING)
    swept.settle()
    region = swept.broker.registry.find_queue(BILLING)
    assert region is not None and region.drop(1) == 1
    swept.idle(TIMEOUT + 2 * PERIOD)
    assert swept.broker.registry.find(BILLING) is None


@pytest.mark.parametrize("destination", FED)
def test_a_queue_that_a_feed_is_writing_to_is_in_use(
    swept: SweptBench, destination: Destination
) -> None:
    begin_feeding(swept, destination)
    assert is_in_use(swept.broker, destination)
    swept.settle()
    region = swept.broker.registry.find_queue(destination)
    assert region is not None and region.drop(1) == 1
    assert not is_in_use(swept.broker, destination)


def test_a_batch_that_the_store_refuses_leaves_no_trace(
    swept: SweptBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, broker = swept.connect(), swept.broker
    broker.streams.declare("orders", FED[BILLING])

    def refuse(*_: object) -> None:
        raise ArithmeticError("a batch that cannot be made")

    with monkeypatch.context() as patched:
        patched.setattr(broker.streams.groups, "commit_with", refuse)
        swept.append(client, "orders", "paid")
        broker.tick(swept.now)
    assert broker.containment.counts["command"] == 1
    assert not is_in_use(broker, BILLING)
    for _ in range(3):
        swept.tick(PERIOD)
    assert swept.bodies_in(BILLING) == [b"paid"]


def test_who_removes_a_queue_by_hand_removes_what_is_being_written(swept: SweptBench) -> None:
    begin_feeding(swept, BILLING)
    broker = swept.broker
    broker.destinations.remove(BILLING, None)
    swept.settle()
    assert not is_in_use(broker, BILLING)
    # The feed goes on, as a producer does: its next message makes the queue anew.
    swept.append(swept.connect(), "orders", "sent")
    swept.settle()
    assert swept.bodies_in(BILLING) == [b"sent"]
    swept.crash()
    swept.settle()
    assert swept.bodies_in(BILLING) == [b"sent"]
    assert swept.now == START + TIMEOUT
