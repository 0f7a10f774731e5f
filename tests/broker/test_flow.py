"""Sends without room wait: in order, for as long as they are to, and hold up nothing else."""

from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from lockkeeper.broker.connections import STALLED_BYTES_MAX
from lockkeeper.broker.errors import InvalidDestinationError, ResourceAllocationError
from lockkeeper.broker.flow.space import MINIMUM_WINDOW_BYTES, Limit, holders
from lockkeeper.broker.outputs import Disconnect, Failure, ProducerCredit, Reply
from lockkeeper.broker.policies.flow import FlowPolicy
from lockkeeper.broker.policies.policy import DestinationPolicy
from lockkeeper.broker.settings import BrokerSettings, MemoryUsage, SystemUsage
from lockkeeper.message.destination import Destination, Kind, queue
from lockkeeper.message.ids import ProducerId
from lockkeeper.message.rewrite import decoded
from lockkeeper.store.base import StoreFullError
from lockkeeper.store.memory import MemoryStore

if TYPE_CHECKING:
    from conftest import Bench, Client

ONE_AT_A_TIME = DestinationPolicy(memory_limit=1)
MEMORY_BYTES = 1 << 20
KILOBYTES_100 = "x" * 100_000


class FullStore(MemoryStore):
    """A store that can be full, and that has temporary files if it is to."""

    full = False

    def __init__(self, spools: bool = False) -> None:
        super().__init__()
        self.spools = spools
        self.spooled: dict[int, Any] = {}

    def check_full(self) -> None:
        """Raise while it is said to be full."""
        if self.full:
            raise StoreFullError("no room")

    def spool(self, references: Any) -> int:
        """Keep the messages elsewhere, if there are temporary files."""
        if not self.spools:
            return 0
        for reference in references:
            reference.location = len(self.spooled) + 1
            self.spooled[reference.location] = reference.message
        return len(references)

    def load(self, references: Any, next_sequence: int) -> None:
        """Bring them back."""
        for reference in references:
            if reference.message is None:
                reference.message = self.spooled[reference.location]

    def unspool(self, references: Any) -> None:
        """Forget them."""
        for reference in references:
            del self.spooled[reference.location]
            reference.location = 0


def usage(**fields: Any) -> BrokerSettings:
    return BrokerSettings(system_usage=SystemUsage(MemoryUsage(MEMORY_BYTES), **fields))


def replies(client: "Client") -> int:
    return sum(isinstance(output, Reply) for output in client.outputs())


def failures(client: "Client") -> list[str]:
    return [str(output.error) for output in client.outputs() if isinstance(output, Failure)]


def fill(client: "Client", name: str = "FULL") -> None:
    """Use up the memory of the broker."""
    while client.bench.broker.memory.used < MEMORY_BYTES:
        client.send(name, KILOBYTES_100, persistent=False)
    client.outputs()


@pytest.fixture
def limited(make_bench: "type[Bench]") -> "Bench":
    """Return a broker where Q has room for one message."""
    return make_bench(Q=ONE_AT_A_TIME)


@pytest.fixture
def small(make_bench: "type[Bench]") -> "Bench":
    """Return a broker with little memory."""
    return make_bench(settings=usage())


def test_a_send_without_room_is_answered_when_it_came_in(limited: "Bench") -> None:
    producer, client = limited.client(), limited.client()
    for number in range(3):
        producer.send("Q", f"m{number}", persistent=False)
    assert replies(producer) == 1
    consumer = client.consume("Q")
    for number in range(3):
        (delivery,) = client.deliveries()
        assert f"m{number}".encode() in delivery.message.body
        client.acknowledge(consumer, delivery.message)
        limited.tick()
    assert replies(producer) == 2
    assert limited.broker.flow.lines == {}


def test_what_comes_later_waits_behind_what_waits(limited: "Bench") -> None:
    producer, client = limited.client(), limited.client()
    for number in range(2):
        producer.send("Q", f"m{number}", persistent=False)
    consumer = client.consume("Q")
    (delivery,) = client.deliveries()
    limited.broker.acknowledge(consumer, 2, delivery.message.sequence, 1, None)
    producer.send("Q", "m2", persistent=False, wait=False)
    limited.tick()
    assert client.texts() == ["m1"]


def test_a_window_is_given_back_only_for_what_came_in(limited: "Bench") -> None:
    producer, broker = limited.client(), limited.broker
    identifier = ProducerId("p", 1, 1)
    for number in range(2):
        message = limited.message(producer, queue("Q"), f"m{number}", persistent=False)
        receipt = ProducerCredit(producer.connection, identifier, 10 + number)
        broker.send(producer.connection, message, receipt)
    limited.tick()
    assert [output.size for output in producer.outputs()] == [10]  # type: ignore[union-attr]
    client = limited.client()
    consumer = client.consume("Q")
    client.acknowledge(consumer, client.deliveries()[0].message)
    limited.tick()
    assert [output.size for output in producer.outputs()] == [11]  # type: ignore[union-attr]


def test_a_blocked_producer_blocks_nothing_else_of_its_connection(limited: "Bench") -> None:
    client = limited.client()
    consumer = client.consume("Q", prefetch=1)
    for number in range(3):
        client.send("Q", f"m{number}", persistent=False)
    assert client.texts(client.consume("OTHER")) == []
    client.send("OTHER", "goes on", persistent=False)
    held = client.deliveries()
    assert [delivery.message.destination.name for delivery in held] == ["OTHER"]
    transaction = client.begin()
    client.send("OTHER", "so do transactions", transaction_id=transaction)
    limited.broker.transactions.commit(client.connection, transaction, None)
    limited.tick()
    assert len(client.texts()) == 1
    (sequence,) = consumer.dispatched
    limited.broker.acknowledge(consumer, 2, sequence, 1, None)
    limited.tick()
    assert client.texts(consumer) == ["m1"]


@pytest.mark.parametrize("by_policy", [True, False])
def test_a_send_may_fail_instead_of_waiting(make_bench: "type[Bench]", by_policy: bool) -> None:
    policy = DestinationPolicy(
        memory_limit=1, flow=FlowPolicy(send_fail_if_no_space=True if by_policy else None)
    )
    bench = make_bench(settings=usage(send_fail_if_no_space=not by_policy), Q=policy)
    client = bench.client()
    client.send("Q", "a", persistent=False)
    with pytest.raises(ResourceAllocationError, match=r"no room for queue://Q: memoryLimit"):
        client.send("Q", "b", persistent=False)
    assert bench.broker.flow.lines == {}


def test_a_policy_may_wait_where_the_broker_would_not(make_bench: "type[Bench]") -> None:
    policy = DestinationPolicy(memory_limit=1, flow=FlowPolicy(send_fail_if_no_space=False))
    bench = make_bench(settings=usage(send_fail_if_no_space=True), Q=policy)
    client = bench.client()
    for text in "ab":
        client.send("Q", text, persistent=False)
    assert len(bench.broker.flow.blocked()) == 1


def test_a_send_may_fail_after_a_time(make_bench: "type[Bench]") -> None:
    bench = make_bench(settings=usage(send_fail_if_no_space_after_timeout=300), Q=ONE_AT_A_TIME)
    client = bench.client()
    for text in "abc":
        client.send("Q", text, persistent=False)
        bench.tick(100)
    assert failures(client) == []
    bench.tick(100)
    (failure,) = failures(client)
    assert "memoryLimit" in failure
    assert bench.broker.flow.blocked()[0].sends == 1
    consumer = client.consume("Q")
    client.acknowledge(consumer, client.deliveries()[0].message)
    bench.tick()
    assert client.texts() == ["c"]
    bench.tick(1000)
    assert failures(client) == []


def test_a_send_that_nobody_waits_for_is_reported_to_its_connection(
    make_bench: "type[Bench]",
) -> None:
    bench = make_bench(settings=usage(send_fail_if_no_space_after_timeout=300), Q=ONE_AT_A_TIME)
    client = bench.client()
    client.send("Q", "a", persistent=False)
    credit = ProducerCredit(client.connection, ProducerId("p", 1, 1), 7)
    message = bench.message(client, queue("Q"), "b", persistent=False)
    bench.broker.send(client.connection, message, credit)
    client.outputs()
    bench.tick(300)
    kinds = [type(output) for output in client.outputs()]
    assert kinds == [Disconnect, ProducerCredit]
    assert client.connection.stalled_bytes == 0


def test_a_connection_that_goes_takes_along_what_waits(limited: "Bench") -> None:
    producer, other, client = limited.client(), limited.client(), limited.client()
    producer.send("Q", "came in", persistent=False)
    producer.send("Q", "gone", persistent=False)
    other.send("Q", "stays", persistent=False)
    producer.leave()
    consumer = client.consume("Q")
    client.acknowledge(consumer, client.deliveries()[0].message)
    limited.tick()
    assert client.texts() == ["stays"]


def test_without_flow_control_only_the_broker_itself_stops_a_producer(
    make_bench: "type[Bench]",
) -> None:
    policy = DestinationPolicy(memory_limit=1, flow=FlowPolicy(producer_flow_control=False))
    bench = make_bench(settings=usage(), Q=policy)
    client = bench.client()
    for number in range(5):
        client.send("Q", f"m{number}", persistent=False)
    assert bench.broker.flow.lines == {}
    fill(client, "Q")
    client.send("Q", "waits", persistent=False)
    assert bench.broker.flow.blocked()[0].limit is Limit.TEMP_USAGE


def test_a_persistent_message_waits_for_the_store_and_for_nothing_else(
    make_bench: "type[Bench]",
) -> None:
    store = FullStore()
    bench = make_bench(store, settings=usage())
    client = bench.client()
    store.full = True
    client.send("Q", "persistent")
    client.send("topic://T", "stored for nobody")
    client.send("Q", "other", persistent=False)
    assert client.texts(client.consume("Q")) == ["other"]
    (blocked,) = bench.broker.flow.blocked()
    assert (blocked.limit, blocked.is_persistent) == (Limit.STORE_USAGE, True)
    assert (blocked.destination, blocked.sends) == (queue("Q"), 1)
    store.full = False
    bench.tick()
    assert client.texts() == ["persistent"]


def test_acknowledgements_and_outcomes_need_no_room(make_bench: "type[Bench]") -> None:
    store = FullStore()
    bench = make_bench(store)
    client = bench.client()
    client.send("Q", "a")
    consumer = client.consume("Q")
    (delivery,) = client.deliveries()
    transaction = client.begin()
    client.send("Q", "b", transaction_id=transaction)
    store.full = True
    client.acknowledge(consumer, delivery.message)
    bench.broker.transactions.commit(client.connection, transaction, None)
    bench.tick()
    assert client.texts() == ["b"]
    with pytest.raises(StoreFullError):
        client.send("Q", "c", transaction_id=client.begin(2))


def test_a_message_that_waited_for_a_destination_that_is_gone_is_refused(
    make_bench: "type[Bench]",
) -> None:
    bench = make_bench(settings=usage())
    owner, client = bench.client(), bench.client()
    temporary = Destination(Kind.TEMP_QUEUE, "ID:1:1")
    bench.broker.destinations.create_temporary(owner.connection, temporary)
    fill(client)
    client.send(str(temporary), "late", persistent=False)
    owner.leave()
    drain(client)
    (failure,) = failures(client)
    assert "deleted Destination" in failure
    with pytest.raises(InvalidDestinationError):
        bench.broker.route(temporary)


def drain(client: "Client", name: str = "FULL") -> None:
    """Consume everything of a queue, and leave its other outputs."""
    consumer = client.consume(name)
    while consumer.dispatched:
        last = list(consumer.dispatched)[-1]
        client.bench.broker.acknowledge(consumer, 2, last, len(consumer.dispatched), None)
        client.bench.tick()


def test_a_full_memory_stops_producers_of_all_queues_in_turn(small: "Bench") -> None:
    client, producers = small.client(), [small.client() for _ in range(2)]
    fill(client)
    for name, producer in zip("AB", producers, strict=True):
        for _ in range(20):
            producer.send(name, KILOBYTES_100, persistent=False)
    assert [blocked.sends for blocked in small.broker.flow.blocked()] == [20, 20]
    drain(client)
    entered = [small.depth(name) for name in "AB"]
    assert sum(entered) >= 10
    for name in "ABAB":
        drain(client, name)
    assert small.broker.flow.lines == {}


def test_who_comes_new_does_not_overtake_who_waits_for_memory(small: "Bench") -> None:
    client, waiting, new = (small.client() for _ in range(3))
    fill(client)
    waiting.send("A", KILOBYTES_100, persistent=False)
    consumer = client.consume("FULL", prefetch=1)
    (delivery,) = client.deliveries()
    small.broker.acknowledge(consumer, 2, delivery.message.sequence, 1, None)
    new.send("B", "new", persistent=False, wait=False)
    assert small.depth("B") == 0
    small.tick()
    assert small.depth("A") == 1


def test_a_destination_with_consumers_keeps_a_window_however_full_memory_is(
    small: "Bench",
) -> None:
    client = small.client()
    fill(client)
    client.consume("SERVED")
    client.consume("topic://SERVED")
    client.send("SERVED", "queue", persistent=False)
    client.send("topic://SERVED", "topic", persistent=False)
    client.send("topic://NOBODY", "kept nowhere", persistent=False)
    assert client.texts() == ["queue", "topic"]
    assert small.broker.flow.lines == {}
    for _ in range(MINIMUM_WINDOW_BYTES // 1000 + 1):
        client.send("SERVED", "x" * 1000, persistent=False)
    (blocked,) = small.broker.flow.blocked()
    assert blocked.destination == queue("SERVED")


def test_a_persistent_backlog_is_delivered_however_full_memory_is(small: "Bench") -> None:
    client = small.client()
    fill(client)
    client.send("Q", "persistent")
    assert client.texts(client.consume("Q")) == ["persistent"]


def test_transactions_may_go_beyond_the_limit_but_not_for_ever(small: "Bench") -> None:
    client = small.client()
    fill(client)
    transaction = client.begin()
    client.send("Q", "beyond", persistent=False, transaction_id=transaction)
    assert small.broker.flow.lines == {}
    large = "x" * (1 << 20)
    with pytest.raises(ResourceAllocationError, match=r"memoryUsage .* transactions"):
        for _ in range(32):
            client.send("Q", large, persistent=False, transaction_id=transaction)
    small.broker.transactions.rollback(client.connection, transaction, None)
    assert small.broker.memory.used < 2 * MEMORY_BYTES


def test_a_connection_that_only_sends_to_one_destination_is_not_read_for_a_while(
    limited: "Bench",
) -> None:
    producer = limited.client()
    producer.consume("topic://ActiveMQ.Advisory.TempQueue,topic://ActiveMQ.Advisory.TempTopic")
    half = "x" * (STALLED_BYTES_MAX // 2)
    for _ in range(3):
        producer.send("Q", half, persistent=False)
    assert not producer.connection.must_be_read
    assert producer.connection.stalled
    client = limited.client()
    consumer = client.consume("Q")
    client.acknowledge(consumer, client.deliveries()[0].message)
    limited.tick()
    assert not producer.connection.stalled


@pytest.mark.parametrize("also", ["consumer", "transaction", "producer"])
def test_any_other_is_read_on_and_what_it_sends_waits_in_files(
    make_bench: "type[Bench]", also: str
) -> None:
    store = FullStore(spools=True)
    spooling = FlowPolicy(spool_non_persistent=False)
    bench = make_bench(store, Q=DestinationPolicy(memory_limit=1, flow=spooling))
    client, other = bench.client(), bench.client()
    if also == "consumer":
        client.consume("OTHER")
    elif also == "transaction":
        client.begin()
    else:
        for number in range(2):
            bench.broker.add_producer(client.connection, number, queue(str(number)))
    half = "x" * (STALLED_BYTES_MAX // 2 - 1000)
    for number in range(5):
        client.send("Q", f"{number}{half}", persistent=False)
    assert not client.connection.stalled
    assert len(store.spooled) == 2
    consumer = other.consume("Q")
    for number in range(5):
        (delivery,) = other.deliveries()
        assert b"%dxxx" % number in delivery.message.body
        other.acknowledge(consumer, delivery.message)
        bench.tick()
    assert (store.spooled, bench.broker.flow.lines) == ({}, {})


def test_without_room_in_files_either_such_a_send_fails(limited: "Bench") -> None:
    client = limited.client()
    client.consume("OTHER")
    half = "x" * (STALLED_BYTES_MAX // 2 - 1000)
    for _ in range(3):
        client.send("Q", half, persistent=False)
    with pytest.raises(ResourceAllocationError, match="no room for queue://Q"):
        client.send("Q", half, persistent=False)


def test_what_waits_is_told_with_its_limit_and_who_holds_it(small: "Bench") -> None:
    client, producer = small.client(), small.client()
    fill(client, "LARGE")
    producer.send("SMALL", "waits", persistent=False)
    since = small.now
    small.tick(500)
    (blocked,) = small.broker.flow.blocked()
    assert (blocked.destination, blocked.since) == (queue("SMALL"), since)
    assert blocked.connections == (producer.connection,)
    assert blocked.bytes > len("waits")
    (holder,) = holders(small.broker.registry)
    assert holder.destination == queue("LARGE")
    assert holder.memory_bytes == small.broker.memory.used


def test_a_list_waits_as_a_whole(limited: "Bench") -> None:
    producer, client = limited.client(), limited.client()
    producer.send("Q", "first", persistent=False)
    producer.send("Q,R", "both", persistent=False)
    assert limited.depth("R") == 0
    consumer = client.consume("Q")
    client.acknowledge(consumer, client.deliveries()[0].message)
    limited.tick()
    assert client.texts() == ["both"]
    assert limited.depth("R") == 1


@pytest.mark.parametrize("seed", range(20))
def test_nothing_overtakes_what_waits_under_another_name(
    make_bench: "type[Bench]", seed: int
) -> None:
    chance = Random(seed)
    bench = make_bench(A=ONE_AT_A_TIME, B=ONE_AT_A_TIME)
    client, reader = bench.client(), bench.client()
    consumers = {name: reader.consume(name, prefetch=1) for name in "AB"}
    sent: dict[str, list[str]] = {"A": [], "B": []}
    got: dict[str, list[str]] = {"A": [], "B": []}
    held: dict[str, Any] = {}

    def read() -> None:
        for consumer, message, _ in reader.deliveries():
            assert consumer is not None
            name = consumer.destination.name
            got[name].append((decoded(message).content or b"")[4:].decode())
            held[name] = message

    for number in range(60):
        names = chance.choice(("A", "B", "A,B"))
        client.send(names, str(number), persistent=False)
        for name in names.split(","):
            sent[name].append(str(number))
        read()
        if chance.random() < 0.4 and held:
            name = chance.choice(list(held))
            reader.acknowledge(consumers[name], held.pop(name))
            read()
    while held:
        name = chance.choice(list(held))
        reader.acknowledge(consumers[name], held.pop(name))
        bench.tick()
        read()
    assert got == sent
    assert (bench.broker.flow.lines, bench.broker.flow._last) == ({}, {})
