"""Topics that go into streams: what JMS's producers send, once, in the batch of the topic."""

from dataclasses import replace
from itertools import chain
from typing import Any

import pytest
from streams_kit import Bench, DiskBench, taken

from lockkeeper.broker.connections import Connection
from lockkeeper.broker.errors import BrokerError, TransactionError
from lockkeeper.broker.outputs import Reply
from lockkeeper.broker.streams.drafts import tag_hash_of
from lockkeeper.broker.streams.filters import EVERYTHING, sql_filter, tags_filter
from lockkeeper.broker.streams.settings import StreamSettings
from lockkeeper.broker.subscriptions.request import ConsumeRequest
from lockkeeper.message.bodies import MessageType, encode_body
from lockkeeper.message.destination import queue, topic
from lockkeeper.message.ids import (
    LocalTransactionId,
    MessageId,
    ProducerId,
    TransactionId,
    XATransactionId,
)
from lockkeeper.message.message import Message
from lockkeeper.message.openwire import (
    ActiveMQBytesMessage,
    ActiveMQMapMessage,
    ActiveMQMessage,
    ActiveMQObjectMessage,
    ActiveMQStreamMessage,
    ActiveMQTextMessage,
)
from lockkeeper.message.openwire import Message as Fields
from lockkeeper.message.primitives import Short, encode_map
from lockkeeper.message.rewrite import decoded, encoded, properties_of

NEWS = topic("news")
BRIDGED = StreamSettings(1, from_topics=("news",))
WAYS = StreamSettings(1, from_topics=("news",), to_queues=("billing",))
NAMES = {
    ActiveMQTextMessage: MessageType.TEXT,
    ActiveMQMapMessage: MessageType.MAP,
    ActiveMQBytesMessage: MessageType.BYTES,
    ActiveMQObjectMessage: MessageType.OBJECT,
    ActiveMQStreamMessage: MessageType.STREAM,
    ActiveMQMessage: MessageType.MESSAGE,
}


def message(
    bench: Bench,
    number: int,
    text: Any = None,
    kind: type[Fields] = ActiveMQTextMessage,
    session: int = 1,
    properties: Any = None,
    **fields: Any,
) -> Message:
    """Return a message of a JMS producer."""
    producer = ProducerId("ID:shop-1", 1, session)
    content = None if text is None else encode_body(NAMES[kind], text)
    made = kind(
        producer_id=producer,
        message_id=MessageId(producer, number),
        content=content,
        **{"destination": NEWS, "persistent": True, "timestamp": 1_234, **fields},
    )
    if properties:
        made.marshalled_properties = encode_map(properties)
    return encoded(made, bench.broker.context.next_sequence())


def send(bench: Bench, client: Connection, *texts: str, first: int = 1, **fields: Any) -> None:
    """Send text messages, and wait for the disk."""
    for number, text in enumerate(texts, first):
        bench.broker.send(client, message(bench, number, text, **fields), Reply(client, number))
    bench.settle()


def begin(bench: Bench, client: Connection) -> TransactionId:
    identifier = LocalTransactionId(client.identifier, 1)
    bench.broker.transactions.begin(client, identifier)
    return identifier


def test_what_is_sent_to_a_topic_is_in_the_stream(any_bench: Bench) -> None:
    client = any_bench.connect()
    any_bench.broker.streams.declare("log", BRIDGED)
    send(any_bench, client, *"abc")
    assert len(taken(client)) == 3
    assert any_bench.bodies(client, "log") == [*"abc"]
    any_bench.restart()
    client = any_bench.connect()
    send(any_bench, client, "d", first=4)
    taken(client)
    assert any_bench.bodies(client, "log") == [*"abcd"]


def test_a_bridge_comes_and_goes_while_producers_are_connected(any_bench: Bench) -> None:
    client, streams = any_bench.connect(), any_bench.broker.streams
    send(any_bench, client, "a")
    streams.declare("log", BRIDGED)
    send(any_bench, client, "b", first=2)
    streams.declare("log", StreamSettings(1))
    send(any_bench, client, "c", first=3)
    streams.declare("log", StreamSettings(3, from_topics=("news",)))
    send(any_bench, client, "d", first=4)
    taken(client)
    found = [any_bench.bodies(client, "log", partition=number) for number in range(3)]
    assert sorted(chain.from_iterable(found)) == ["b", "d"]
    streams.remove("log")
    send(any_bench, client, "e", first=5)
    assert len(taken(client)) == 1


def test_messages_are_for_the_topic_too(any_bench: Bench) -> None:
    client = any_bench.connect()
    any_bench.broker.streams.declare("log", BRIDGED)
    request = ConsumeRequest("c", NEWS, 100, tag="c", subscription_name="s")
    any_bench.broker.subscriptions.subscribe(client, request, None)
    send(any_bench, client, *"ab")
    deliveries = [each for each in taken(client) if type(each) is tuple]
    assert sum(len(references) for _, references in deliveries) == 2
    assert any_bench.bodies(client, "log") == [*"ab"]


def test_a_transaction_comes_whole_or_not_at_all(any_bench: Bench) -> None:
    client, broker = any_bench.connect(), any_bench.broker
    broker.streams.declare("log", BRIDGED)
    identifier = begin(any_bench, client)
    send(any_bench, client, *"ab", transaction_id=identifier)
    taken(client)
    assert any_bench.bodies(client, "log") == []
    send(any_bench, client, "c", first=3)
    broker.transactions.commit(client, identifier, None)
    any_bench.settle()
    taken(client)
    assert any_bench.bodies(client, "log") == [*"cab"]
    identifier = begin(any_bench, client)
    send(any_bench, client, *"xy", first=4, transaction_id=identifier)
    broker.transactions.rollback(client, identifier, None)
    any_bench.settle()
    send(any_bench, client, "z", first=6)
    taken(client)
    assert any_bench.bodies(client, "log") == [*"cabz"]


def test_a_commit_outlives_a_crash(disk_bench: DiskBench) -> None:
    client = disk_bench.connect()
    disk_bench.broker.streams.declare("log", BRIDGED)
    identifier = begin(disk_bench, client)
    send(disk_bench, client, *"ab", transaction_id=identifier)
    disk_bench.broker.transactions.commit(client, identifier, None)
    disk_bench.settle()
    identifier = begin(disk_bench, client)
    send(disk_bench, client, *"xy", first=3, transaction_id=identifier)
    disk_bench.crash()
    assert disk_bench.bodies(disk_bench.connect(), "log") == [*"ab"]


def test_a_bridge_that_ends_before_the_commit_leaves_the_topic_its_messages(bench: Bench) -> None:
    client, broker = bench.connect(), bench.broker
    broker.streams.declare("log", BRIDGED)
    identifier = begin(bench, client)
    send(bench, client, *"ab", transaction_id=identifier)
    broker.streams.remove("log")
    broker.transactions.commit(client, identifier, None)
    bench.settle()
    taken(client)
    broker.streams.declare("log", BRIDGED)
    send(bench, client, "c", first=3)
    taken(client)
    assert bench.bodies(client, "log") == ["c"]


def test_xa_transactions_are_refused(bench: Bench) -> None:
    client = bench.connect()
    bench.broker.streams.declare("log", BRIDGED)
    identifier = XATransactionId(1, b"g", b"b")
    bench.broker.transactions.begin(client, identifier)
    with pytest.raises(TransactionError, match="takes no part in XA"):
        send(bench, client, "a", transaction_id=identifier)


@pytest.mark.parametrize("fails_over", [False, True])
def test_what_is_sent_again_after_a_failover_is_there_once(
    disk_bench: DiskBench, fails_over: bool
) -> None:
    client = disk_bench.connect()
    disk_bench.broker.streams.declare("log", BRIDGED)
    client.fault_tolerant = True
    send(disk_bench, client, *"ab")
    if fails_over:
        disk_bench.crash()
    client = disk_bench.connect()
    client.fault_tolerant = client.reconnected = True
    send(disk_bench, client, *"bc", first=2)
    taken(client)
    assert disk_bench.bodies(client, "log") == [*"abc"]


def test_the_last_of_many_large_messages_are_known_after_a_failover(disk_bench: DiskBench) -> None:
    client = disk_bench.connect()
    disk_bench.broker.streams.declare("log", BRIDGED)
    client.fault_tolerant = True
    texts = [f"{number:08000}" for number in range(300)]
    send(disk_bench, client, *texts)
    disk_bench.crash()
    client = disk_bench.connect()
    client.fault_tolerant = client.reconnected = True
    send(disk_bench, client, *texts[-5:], "new", first=296)
    taken(client)
    partition = disk_bench.broker.streams.get("log").partition(0)
    scan = partition.scan(0, 400, 4 << 20, EVERYTHING)
    assert [record.draft.body.decode() for record in scan.records] == [*texts, "new"]


def test_the_last_of_several_producers_are_known_after_a_failover(
    disk_bench: DiskBench,
) -> None:
    """The last ones of several producers are larger together than a MiB."""
    client = disk_bench.connect()
    disk_bench.broker.streams.declare("log", BRIDGED)
    client.fault_tolerant = True
    text = "x" * 600_000
    for session in range(1, 6):
        send(disk_bench, client, text, session=session)
    disk_bench.crash()
    client = disk_bench.connect()
    client.fault_tolerant = client.reconnected = True
    for session in range(1, 6):
        send(disk_bench, client, text, session=session)
    assert disk_bench.broker.streams.get("log").partition(0).maximum == 5


def test_messages_of_a_group_or_a_session_stay_in_one_partition(bench: Bench) -> None:
    client = bench.connect()
    bench.broker.streams.declare("log", StreamSettings(4, from_topics=("news",)))
    for session in range(8):
        send(bench, client, *[f"s{session}"] * 3, session=session)
        send(bench, client, *[f"g{session}"] * 3, first=4, session=9, group_id=f"{session}")
        send(bench, client, *[f"g{session}"] * 3, first=4, session=8, group_id=f"{session}")
    taken(client)
    found = [set(bench.bodies(client, "log", partition=number)) for number in range(4)]
    assert sum(map(len, found)) == len(set.union(*found)) == 16
    assert all(found)


def test_headers_become_properties_that_filters_and_searches_know(any_bench: Bench) -> None:
    client = any_bench.connect()
    any_bench.broker.streams.declare("log", BRIDGED)
    own = {"price": 12, "fresh": True, "small": Short(3)}
    fields: dict[str, Any] = {
        "type": "paid",
        "correlation_id": "k1 k2",
        "group_id": "g",
        "expiration": 5,
    }
    send(any_bench, client, "grün", properties=own, **fields)
    taken(client)
    any_bench.restart()
    client = any_bench.connect()
    (record,) = any_bench.read(client, "log", wanted=sql_filter("price > 10")).records
    draft = record.draft
    assert draft.body.decode() == "grün"
    assert draft.born_at == 1_234
    assert draft.properties == {
        "TAGS": "paid",
        "KEYS": "k1 k2",
        "UNIQ_KEY": "ID:shop-1:1:1:1",
        "__SHARDINGKEY": "g",
        "price": "12",
        "fresh": "true",
        "small": "3",
        "lockkeeperBody": "text",
    }
    assert len(any_bench.read(client, "log", wanted=tags_filter("paid")).records) == 1
    for key in ("k2", "ID:shop-1:1:1:1"):
        found = any_bench.broker.streams.queries.find_key("log", key, 0, 1 << 60, 5)
        assert [each.offset for _, each in found] == [0]
    assert any_bench.broker.streams.queries.record_at(record.location)[2].offset == 0


@pytest.mark.parametrize(
    ("kind", "body", "seen", "said"),
    [
        (ActiveMQTextMessage, "grün", "grün".encode(), "text"),
        (ActiveMQBytesMessage, b"\x00\xff", b"\x00\xff", None),
        (ActiveMQMapMessage, {"a": 1, "b": b"\x01"}, b'{"a": 1, "b": "01"}', "map"),
        (ActiveMQObjectMessage, b"\xac\xed\x00", b"\xac\xed\x00", "object"),
        (ActiveMQStreamMessage, [1, "x"], b'[1, "x"]', "stream"),
        (ActiveMQMessage, None, b"", None),
    ],
    ids=["text", "bytes", "map", "object", "stream", "none"],
)
def test_a_message_on_its_way_through_a_stream(
    any_bench: Bench, kind: type[Fields], body: Any, seen: bytes, said: str | None
) -> None:
    """Readers of the stream see bytes and texts; JMS gets what its producer sent."""
    client = any_bench.connect()
    any_bench.broker.streams.declare("log", WAYS)
    fields: dict[str, Any] = {
        "type": "t",
        "correlation_id": "k",
        "reply_to": queue("r"),
        "priority": 7,
    }
    own = {"price": Short(12), "fresh": True}
    sent = message(any_bench, 1, body, kind, properties=own, **fields)
    any_bench.broker.send(client, sent, None)
    for _ in range(5):
        any_bench.tick()
    (record,) = any_bench.read(client, "log").records
    assert record.draft.body == seen
    assert record.draft.properties.get("lockkeeperBody") == said
    region = any_bench.broker.registry.find_queue(queue("billing"))
    assert region is not None
    waiting = list(region.waiting())
    any_bench.store.load(waiting, any_bench.broker.context.next_sequence(2))
    found = decoded(waiting[0].loaded)
    assert type(found) is kind
    before = decoded(sent)
    for name in ("content", "type", "correlation_id", "reply_to", "priority", "timestamp"):
        assert getattr(found, name) == getattr(before, name), name
    assert str(found.message_id) == "ID:shop-1:1:1:1"
    properties = properties_of(found)
    assert type(properties["price"]) is Short
    assert (properties["price"], properties["fresh"]) == (12, True)


def test_a_text_that_no_message_of_a_stream_has_room_for_is_no_tag(bench: Bench) -> None:
    client = bench.connect()
    bench.broker.streams.declare("log", BRIDGED)
    for number, tag in enumerate(("x" * 32_768, "x" * 32_767), 1):
        send(bench, client, "a", first=number, properties={"TAGS": tag, "KEYS": f"{tag} {tag}"})
    taken(client)
    partition = bench.broker.streams.get("log").partition(0)
    hashes = [entry.tag_hash for entry in partition.segments[0].entries(0, 2)]
    assert hashes == [0, tag_hash_of("x" * 32_767)]
    tags = [partition.newest(2, 1 << 20)[at].draft.tags for at in (0, 1)]
    assert tags == ["x" * 32_768, "x" * 32_767]


def test_what_cannot_be_read_is_kept_as_bytes(any_bench: Bench) -> None:
    client = any_bench.connect()
    any_bench.broker.streams.declare("log", BRIDGED)
    fields = decoded(message(any_bench, 1, "a"))
    fields.marshalled_properties = b"\x00\x00\x00\x09nonsense"
    broken = encoded(fields, 1)
    any_bench.broker.send(client, broken, None)
    any_bench.settle()
    (record,) = any_bench.read(client, "log").records
    assert b"nonsense" in record.draft.body
    assert record.draft.properties["UNIQ_KEY"] == "ID:shop-1:1:1:1"


def test_what_waits_for_the_disk_counts_in_memory(bench: Bench) -> None:
    client, memory = bench.connect(), bench.broker.memory
    bench.broker.streams.declare("log", BRIDGED)
    before = memory.used
    bench.broker.send(client, message(bench, 1, "a" * 1_000), None)
    assert memory.used > before + 1_000
    bench.settle()
    assert memory.used == before


def test_topics_that_cannot_go_into_a_stream(bench: Bench) -> None:
    for names, why in ((("a.>",), "wildcard"), (("a", "a"), "twice")):
        with pytest.raises(BrokerError, match=why):
            bench.broker.streams.declare("log", StreamSettings(from_topics=names))


def test_what_was_not_persistent_is_fed_for_good(disk_bench: DiskBench) -> None:
    client = disk_bench.connect()
    settings = replace(BRIDGED, to_queues=("billing",))
    disk_bench.broker.streams.declare("log", settings)
    send(disk_bench, client, "a", persistent=False)
    for _ in range(8):
        disk_bench.tick()
    disk_bench.crash()
    region = disk_bench.broker.registry.find_queue(queue("billing"))
    assert region is not None
    assert region.depth() == 1
