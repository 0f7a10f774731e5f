"""Queues stay while the broker's own messages for them are being written; by hand they go."""

from pathlib import Path

import pytest
from streams_kit import START, DiskBench, only

from lockkeeper.broker.core import Broker
from lockkeeper.broker.policies.inactivity import InactivityPolicy
from lockkeeper.broker.policies.policy import DestinationPolicy, PolicyEntry, PolicyMap
from lockkeeper.broker.settings import BrokerSettings
from lockkeeper.broker.streams.drafts import Draft
from lockkeeper.broker.streams.groups import Member, Subscribed
from lockkeeper.broker.streams.outputs import HalfStored
from lockkeeper.broker.streams.settings import StreamSettings
from lockkeeper.broker.streams.transactions import Outcome
from lockkeeper.message.destination import Destination, queue, topic
from lockkeeper.message.ids import LocalTransactionId, MessageId, ProducerId
from lockkeeper.message.openwire import ActiveMQTextMessage
from lockkeeper.message.rewrite import decoded, encoded
from lockkeeper.server.declarations import is_in_use
from lockkeeper.server.stream_declarations import is_stream_in_use

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


# Streams


def test_a_stream_is_in_use_while_its_first_message_is_written(swept: SweptBench) -> None:
    client, broker = swept.connect(), swept.broker
    broker.streams.declare("orders", StreamSettings(1))
    assert not is_stream_in_use(broker, "orders")
    broker.streams.append(client, "tag", "orders", 0, [Draft(b"paid")])
    assert broker.streams.get("orders").partition(0).maximum == 0
    assert is_stream_in_use(broker, "orders")
    swept.settle()
    assert is_stream_in_use(broker, "orders")
    assert not is_stream_in_use(broker, "others")


def test_a_stream_is_in_use_while_somebody_reads_it(swept: SweptBench) -> None:
    client, broker = swept.connect(), swept.broker
    broker.streams.declare("orders", StreamSettings(1))
    broker.streams.groups.heartbeat("g", Member("m", client, {"orders": Subscribed("*")}))
    assert is_stream_in_use(broker, "orders")
    broker.disconnect(client)
    assert not is_stream_in_use(broker, "orders")


@pytest.mark.parametrize("outcome", [Outcome.COMMIT, Outcome.ROLLBACK])
def test_a_stream_is_in_use_while_a_half_message_is_to_come(
    swept: SweptBench, outcome: Outcome
) -> None:
    client, streams = swept.connect(), swept.broker.streams
    streams.declare("orders", StreamSettings(1))
    streams.begin_transaction(client, "tag", "makers", "orders", 0, Draft(b"paid"))
    swept.settle()
    assert is_stream_in_use(swept.broker, "orders")
    streams.end_transaction(client, "tag", only(client, HalfStored).number, outcome)
    swept.settle()
    assert is_stream_in_use(swept.broker, "orders") == (outcome is Outcome.COMMIT)


def test_a_stream_is_in_use_while_a_transaction_sends_to_its_topic(swept: SweptBench) -> None:
    client, broker = swept.connect(), swept.broker
    broker.streams.declare("orders", StreamSettings(1, from_topics=("paid",)))
    identifier = LocalTransactionId(client.identifier, 1)
    broker.transactions.begin(client, identifier)
    producer = ProducerId("ID:shop-1", 1, 1)
    sent = ActiveMQTextMessage(
        producer_id=producer,
        message_id=MessageId(producer, 1),
        destination=topic("paid"),
        persistent=True,
        transaction_id=identifier,
    )
    broker.send(client, encoded(sent, broker.context.next_sequence()), None)
    assert is_stream_in_use(broker, "orders")
    broker.transactions.rollback(client, identifier, None)
    assert not is_stream_in_use(broker, "orders")
