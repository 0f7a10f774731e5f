"""Dead letters and memory: what policies decide."""

from typing import TYPE_CHECKING

from lockkeeper.broker.dead_letter_audit import DeadLetterAudit
from lockkeeper.broker.outputs import Reply
from lockkeeper.broker.policies.dead_letters import DeadLetterPolicy, DeadLetterStrategy
from lockkeeper.broker.policies.policy import DestinationPolicy
from lockkeeper.broker.policies.prefetch import PrefetchPolicy
from lockkeeper.message.destination import queue
from lockkeeper.message.rewrite import decoded, properties_of

if TYPE_CHECKING:
    from conftest import Bench


def poisoned(bench: "Bench", source: str = "Q", **fields: object) -> None:
    """Send a message and have it refused."""
    client = bench.client()
    client.send(source, "bad", **fields)
    consumer = client.consume(source)
    (held,) = client.deliveries(consumer)
    bench.broker.poison(consumer, held.message.sequence, 1, "java.lang.Exception: no", None)
    bench.tick()
    client.leave()


def policy(**fields: object) -> DestinationPolicy:
    return DestinationPolicy(dead_letters=DeadLetterPolicy(**fields))  # type: ignore[arg-type]


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
    assert bench.broker.context.memory.used == 0


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
