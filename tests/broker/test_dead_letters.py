"""Dead letters and memory: what policies decide."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from lockkeeper.broker.dead_letter_audit import DeadLetterAudit
from lockkeeper.broker.outputs import Reply
from lockkeeper.broker.policies.dead_letters import DeadLetterPolicy, DeadLetterStrategy
from lockkeeper.broker.policies.expiry import ExpiryPolicy
from lockkeeper.broker.policies.policy import DestinationPolicy
from lockkeeper.broker.policies.prefetch import PrefetchPolicy
from lockkeeper.message.destination import Destination, queue
from lockkeeper.message.primitives import Value
from lockkeeper.message.reader import MessageReader
from lockkeeper.message.rewrite import decoded, encoded, properties_of
from lockkeeper.store.base import Receipt, Reference, Subscription
from lockkeeper.store.kahadb import KahaDBStore
from lockkeeper.store.memory import MemoryStore

if TYPE_CHECKING:
    from conftest import Bench


def poisoned(bench: "Bench", source: str = "Q", **fields: Any) -> None:
    """Send a message and have it refused."""
    client = bench.client()
    client.send(source, "bad", **fields)
    consumer = client.consume(source)
    (held,) = client.deliveries(consumer)
    bench.broker.poison(consumer, held.message.sequence, 1, "java.lang.Exception: no", None)
    bench.tick()
    client.leave()


def policy(**fields: Any) -> DestinationPolicy:
    return DestinationPolicy(dead_letters=DeadLetterPolicy(**fields))


def test_poison_goes_to_the_shared_queue_with_its_origin_and_cause(bench: "Bench") -> None:
    poisoned(bench, properties={"mine": 1}, expiration=bench.now + 60_000)
    client = bench.client()
    (letter,) = client.deliveries(client.consume("ActiveMQ.DLQ"))
    fields = decoded(letter.message)
    properties = properties_of(fields)
    assert fields.original_destination == queue("Q")
    assert fields.expiration == 0
    assert properties["dlqDeliveryFailureCause"] == "java.lang.Exception: no"
    assert properties["originalExpiration"] == bench.now + 60_000
    assert properties["mine"] == 1
    assert bench.depth("Q") == 0
    assert bench.restart().depth("ActiveMQ.DLQ") == 1


def test_a_letter_with_a_schedule_has_the_id_of_a_job(bench: "Bench") -> None:
    """ActiveMQ schedules nothing that has one; other letters have none."""
    poisoned(bench, properties={"AMQ_SCHEDULED_DELAY": 1_000})
    poisoned(bench, properties={"note": "AMQ_SCHEDULED_DELAY"})
    poisoned(bench, properties={"AMQ_SCHEDULED_CRON": "* * * * *", "scheduledJobId": "ID:first:1"})
    client = bench.client()
    letters = client.deliveries(client.consume("ActiveMQ.DLQ"))
    shown = str(decoded(letters[0].message).message_id)
    found = [properties_of(decoded(letter.message)) for letter in letters]
    assert [each.get("scheduledJobId") for each in found] == [shown, None, "ID:first:1"]
    assert found[0]["AMQ_SCHEDULED_DELAY"] == 1_000


@pytest.mark.parametrize("expiration", [-1, -(2**63), 2**63 - 1])
def test_what_lives_for_ever_can_die_nevertheless(bench: "Bench", expiration: int) -> None:
    poisoned(bench, expiration=expiration)
    assert (bench.depth("Q"), bench.depth("ActiveMQ.DLQ")) == (0, 1)


def test_individual_queues_are_named_after_the_origin(make_bench: "type[Bench]") -> None:
    bench = make_bench(Q=policy(strategy=DeadLetterStrategy.INDIVIDUAL, queue_prefix="DLQ."))
    poisoned(bench)
    assert bench.depth("DLQ.Q") == 1


def test_their_names_may_have_a_suffix(make_bench: "type[Bench]") -> None:
    own = {"queue_prefix": "", "queue_suffix": ".DLQ"}
    bench = make_bench(Q=policy(strategy=DeadLetterStrategy.INDIVIDUAL, **own))
    poisoned(bench)
    assert bench.depth("Q.DLQ") == 1


def fail_for_two_subscribers(bench: "Bench") -> None:
    """Have two durable subscribers of a topic give up on the same message."""
    clients = [bench.client(name) for name in ("one", "two")]
    consumers = [client.consume("topic://T", subscription_name="sub") for client in clients]
    bench.client().send("topic://T", "bad")
    for client, consumer in zip(clients, consumers, strict=True):
        (held,) = client.deliveries(consumer)
        bench.broker.poison(consumer, held.message.sequence, 1, "no", None)
        bench.tick()


def test_each_durable_subscriber_may_have_its_own(make_bench: "type[Bench]") -> None:
    individual = policy(
        strategy=DeadLetterStrategy.INDIVIDUAL,
        destination_per_durable_subscriber=True,
        enable_audit=False,
    )
    bench = make_bench(T=individual)
    fail_for_two_subscribers(bench)
    assert bench.depth("ActiveMQ.DLQ.Topic.T.one:sub") == 1
    assert bench.depth("ActiveMQ.DLQ.Topic.T.two:sub") == 1


def test_a_message_is_a_dead_letter_once_however_many_subscribers_fail(
    make_bench: "type[Bench]",
) -> None:
    audited, doubled = make_bench(), make_bench(T=policy(enable_audit=False))
    for bench in (audited, doubled):
        fail_for_two_subscribers(bench)
        assert bench.depth("topic://T") == 0
    assert audited.depth("ActiveMQ.DLQ") == 1
    assert doubled.depth("ActiveMQ.DLQ") == 2


def test_the_audit_remembers_so_many_producers_and_messages() -> None:
    audit, rules = DeadLetterAudit(), DeadLetterPolicy(max_producers_to_audit=2, max_audit_depth=2)
    for key in (b"a:1", b"a:2", b"b:1", b"foreign"):
        assert audit.is_new(rules, queue("Q"), key)
    # Of the producers a was the one that was quiet for longest.
    assert not audit.is_new(rules, queue("Q"), b"b:1")
    assert not audit.is_new(rules, queue("Q"), b"foreign")
    assert audit.is_new(rules, queue("Q"), b"a:2")
    assert audit.is_new(rules, queue("R"), b"a:2")


def test_discarded_letters_are_gone(make_bench: "type[Bench]") -> None:
    bench = make_bench(Q=policy(strategy=DeadLetterStrategy.DISCARD))
    poisoned(bench)
    assert bench.depth("Q") == bench.depth("ActiveMQ.DLQ") == 0


def test_volatile_messages_are_kept_only_by_policy(make_bench: "type[Bench]") -> None:
    plain, keeping = make_bench(), make_bench(Q=policy(process_non_persistent=True))
    for bench in (plain, keeping):
        poisoned(bench, persistent=False)
    assert plain.depth("ActiveMQ.DLQ") == 0
    assert keeping.depth("ActiveMQ.DLQ") == 1


def test_a_dead_letter_that_dies_again_is_gone(bench: "Bench") -> None:
    poisoned(bench)
    client = bench.client()
    consumer = client.consume("ActiveMQ.DLQ")
    (letter,) = client.deliveries(consumer)
    bench.broker.poison(consumer, letter.message.sequence, 1, "again", None)
    bench.tick()
    assert bench.depth("ActiveMQ.DLQ") == 0


def test_the_broker_gives_up_after_the_policys_redeliveries(make_bench: "type[Bench]") -> None:
    bench = make_bench(Q=policy(maximum_redeliveries=1))
    sender = bench.client()
    sender.send("Q", "stubborn")
    for _ in range(2):
        victim = bench.client()
        victim.consume("Q")
        victim.leave()
    assert bench.depth("Q") == 0
    assert bench.depth("ActiveMQ.DLQ") == 1


def test_a_producer_waits_for_memory_and_then_goes_on(make_bench: "type[Bench]") -> None:
    bench = make_bench(memory_limit=4096)
    sender, taker = bench.client(), bench.client()
    for number in range(12):
        sender.send("Q", f"{number:02}" + "x" * 1000, persistent=False)
    answered = sum(isinstance(output, Reply) for output in sender.outputs())
    assert 0 < answered < 12
    consumer = taker.consume("Q")
    received = 0
    while deliveries := taker.deliveries(consumer):
        received += len(deliveries)
        taker.acknowledge(consumer, deliveries[-1].message, len(deliveries))
    assert received == 12
    assert bench.broker.memory.used == 0


def test_a_destinations_own_limit_holds_back_its_producers_only(make_bench: "type[Bench]") -> None:
    bench = make_bench(SMALL=DestinationPolicy(memory_limit=3000))
    sender = bench.client()
    for number in range(5):
        sender.send("SMALL", f"{number}" + "x" * 1000, persistent=False)
    assert sum(isinstance(output, Reply) for output in sender.outputs()) < 5
    sender.send("OTHER", "x" * 1000, persistent=False)
    assert any(isinstance(output, Reply) for output in sender.outputs())
    consumer = sender.consume("SMALL")
    texts = 0
    while deliveries := sender.deliveries(consumer):
        texts += len(deliveries)
        sender.acknowledge(consumer, deliveries[-1].message, len(deliveries))
    assert texts == 5


def test_a_policy_chooses_the_window_where_the_client_did_not(make_bench: "type[Bench]") -> None:
    bench = make_bench(Q=DestinationPolicy(prefetch=PrefetchPolicy(queue=3)))
    client = bench.client()
    assert client.consume("Q").prefetch == 3
    assert client.consume("Q", prefetch=10).prefetch == 10


def individual(**fields: Any) -> DestinationPolicy:
    rules = DeadLetterPolicy(DeadLetterStrategy.INDIVIDUAL, expiration=1000, **fields)
    return DestinationPolicy(dead_letters=rules, expiry=ExpiryPolicy(expire_messages_period=500))


@pytest.mark.parametrize("name", ["Q", "topic://T"])
def test_a_dead_letter_that_dies_again_has_no_dead_letter(
    make_bench: "type[Bench]", name: str
) -> None:
    policies: dict[str, Any] = {">": individual(destination_per_durable_subscriber=True)}
    bench = make_bench(**policies)
    client = bench.client("c")
    client.leave()
    subscriber = bench.client("c")
    if name != "Q":
        subscriber.consume(name, subscription_name="s")
        subscriber.leave()
    bench.client("d").send(name, "x", expiration=bench.now + 10)
    graves = set()
    for _ in range(20):
        bench.tick(500)
        graves |= {each.destination.name for each in bench.broker.registry if each.depth()}
        graves -= {"Q", "T"}
    assert graves == {"ActiveMQ.DLQ.Queue.Q" if name == "Q" else "ActiveMQ.DLQ.Topic.T.c:s"}
    assert sum(each.depth() for each in bench.broker.registry) == 0


def test_a_dead_letter_that_was_sent_back_may_die_again(make_bench: "type[Bench]") -> None:
    bench = make_bench(Q=DestinationPolicy(dead_letters=DeadLetterPolicy()))
    client = bench.client()
    consumer = client.consume("Q")
    client.send("Q", "x")
    for expected in (1, 2):
        (delivery,) = client.deliveries(consumer)
        bench.broker.poison(consumer, delivery.message.sequence, 1, "broken", None)
        bench.tick()
        assert bench.depth("ActiveMQ.DLQ") == expected
        if expected == 1:
            # As ActiveMQ's console does, with every mark of its death left on it.
            marks: dict[str, Value] = {"dlqDeliveryFailureCause": "broken"}
            again = bench.message(client, queue("Q"), "x", properties=marks)
            fields = decoded(again)
            fields.original_destination = queue("ActiveMQ.DLQ")
            again = encoded(fields, bench.broker.context.next_sequence())
            bench.broker.send(client.connection, again, None)
            bench.tick()


def test_properties_that_nobody_can_read_are_kept_with_the_dead_letter(bench: "Bench") -> None:
    client = bench.client()
    fields = decoded(bench.message(client, queue("Q"), "x", expiration=bench.now + 10))
    fields.marshalled_properties = b"\0\0\0\1\xff\xff garbage"
    bench.broker.send(client.connection, encoded(fields, 1), None)
    bench.tick(60_000)
    (letter,) = client.deliveries(client.consume("ActiveMQ.DLQ"))
    properties = properties_of(decoded(letter.message))
    assert properties["lockkeeperUnreadableProperties"] == b"\0\0\0\1\xff\xff garbage"
    assert properties["dlqDeliveryFailureCause"] == "The message has expired"


def test_a_stored_message_that_nobody_can_read_becomes_a_dead_letter_with_its_bytes(
    make_bench: "type[Bench]", tmp_path: Path
) -> None:
    bench = make_bench(KahaDBStore(tmp_path))
    client = bench.client()
    client.send("Q", "first")
    good = bench.message(client, queue("Q"), "second")
    at = good.flags_at + 10
    body = good.body[:at] + b"\xff" * 40 + good.body[at + 40 :]
    garbled = MessageReader().trust(body, 0, len(body), 5)
    bench.broker.send(client.connection, garbled, None)
    client.send("Q", "third")
    bench.store.close()
    bench = make_bench(KahaDBStore(tmp_path))
    client = bench.client()
    assert client.texts(client.consume("Q")) == ["first", "third"]
    assert bench.depth("ActiveMQ.DLQ") == 1
    assert bench.broker.containment.counts["message"] == 1
    bench.store.close()
    bench = make_bench(KahaDBStore(tmp_path))
    assert (bench.depth("Q"), bench.depth("ActiveMQ.DLQ")) == (2, 1)
    client = bench.client()
    (letter,) = client.deliveries(client.consume("ActiveMQ.DLQ"))
    fields = decoded(letter.message)
    kept = fields.content or b""
    assert kept[at : at + 40] == b"\xff" * 40 and len(kept) == len(body)
    assert fields.original_destination == queue("Q")
    assert letter.message.identifier == good.identifier
    assert "MalformedMessageError" in str(properties_of(fields)["dlqDeliveryFailureCause"])
    bench.store.close()


class NotedStore(MemoryStore):
    """A store that notes what ends in it, and with what receipt."""

    def __init__(self) -> None:
        super().__init__()
        self.ends: list[tuple[Destination, Receipt | None]] = []

    def remove(
        self,
        destination: Destination,
        reference: Reference,
        receipt: Receipt | None = None,
        subscription: Subscription | None = None,
        skip_unwritten: bool = True,
    ) -> Receipt | None:
        """Note the end, and end it."""
        self.ends.append((destination, receipt))
        return super().remove(destination, reference, receipt, subscription, skip_unwritten)


def test_several_poisoned_messages_are_answered_when_the_last_has_ended(
    make_bench: "type[Bench]",
) -> None:
    store = NotedStore()
    bench = make_bench(store)
    client = bench.client()
    for number in range(3):
        client.send("Q", str(number))
    consumer = client.consume("Q")
    client.outputs()
    reply = Reply(client.connection, 7)
    store.ends.clear()
    bench.broker.poison(consumer, list(consumer.dispatched)[-1], 3, "no", reply)
    assert [receipt for _, receipt in store.ends if receipt is not None] == [reply]
    assert store.ends[-1][1] is reply
    assert len(store.ends) == 4
    bench.tick()
    assert client.outputs() == [reply]
    assert (bench.depth("Q"), bench.depth("ActiveMQ.DLQ")) == (0, 3)
