"""Targets: RocketMQ's headers, messages and bodies, and whole conversations with a core."""

import json
import struct
from random import Random

from fuzzer import Target, WrongError
from mutations import mutated

from lockkeeper.broker.core import Broker
from lockkeeper.broker.policies.policy import PolicyMap
from lockkeeper.broker.settings import BrokerSettings
from lockkeeper.protocols.rocketmq.bodies import read_heartbeat, read_lock_request
from lockkeeper.protocols.rocketmq.codec import BINARY, JSON, Command, decode, encode
from lockkeeper.protocols.rocketmq.errors import ProtocolError
from lockkeeper.protocols.rocketmq.messages import (
    InBatch,
    Stored,
    decode_batch,
    decode_stored,
    encode_batch,
    encode_stored,
)
from lockkeeper.protocols.rocketmq.session import HANDLERS, RocketMQSession
from lockkeeper.protocols.settings import ListenerSettings
from lockkeeper.store.memory import MemoryStore

START = 1_700_000_000_000
SETTINGS = ListenerSettings(address="127.0.0.1:9876", bound_to="127.0.0.1:9876")
TURNS = 4
LATER_MS = (0, 0, 1_000, 15_000)

HEARTBEAT = json.dumps(
    {
        "clientID": "c", "producerDataSet": [{"groupName": "P"}],
        "consumerDataSet": [{
            "groupName": "G", "consumeType": "CONSUME_PASSIVELY", "messageModel": "CLUSTERING",
            "subscriptionDataSet": [{"topic": "T", "subString": "a || b", "expressionType": "TAG"}],
        }],
    }
).encode()  # fmt: skip
LOCKS = json.dumps(
    {"consumerGroup": "G", "clientId": "c",
     "mqSet": [{"topic": "T", "brokerName": "b", "queueId": 0}]}
).encode()  # fmt: skip
BATCH = encode_batch([InBatch(b"one", {"KEYS": "k"}), InBatch(b"two", {"TAGS": "a"}, 3)])
STORED = encode_stored(Stored("T", 0, 1, 2, b"body", {"TAGS": "a"}))
FIELDS = {
    "producerGroup": "P", "consumerGroup": "G", "group": "G", "topic": "T", "queueId": "0",
    "queueOffset": "0", "sysFlag": "6", "suspendTimeoutMillis": "1000", "subscription": "*",
    "expressionType": "TAG", "commitOffset": "1", "offset": "0", "timestamp": "0", "key": "k",
    "beginTimestamp": "0", "endTimestamp": "9999999999999", "maxNum": "3", "clientID": "c",
    "properties": "KEYS\x01k\x02DELAY\x011\x02", "delayLevel": "1", "commitOrRollback": "8",
    "tranStateTableOffset": "1", "writeQueueNums": "2", "clientId": "c", "msgId": "0" * 32,
    "b": "T", "a": "P", "e": "0", "i": "TRAN_MSG\x01true\x02PGROUP\x01P\x02",
}  # fmt: skip
BODIES = (b"", HEARTBEAT, LOCKS, BATCH, b"x" * 100, b"{}")
WORDS = tuple(
    word.encode()
    for word in ("%RETRY%G", "%DLQ%G", "SCHEDULE_TOPIC_XXXX", "SQL92", "a = 1", "-1", "9" * 20)
)


def targets() -> list[Target]:
    """Return all of this theme."""
    headers = [
        encode(Command(11, 1, 0, FIELDS, b"b", encoding=each))[4:] for each in (JSON, BINARY)
    ]
    return [
        _reading("rocketmq-headers", decode, headers),
        _reading("rocketmq-messages", decode_stored, [STORED]),
        _reading("rocketmq-batches", decode_batch, [BATCH]),
        _reading("rocketmq-heartbeats", read_heartbeat, [HEARTBEAT]),
        _reading("rocketmq-locks", read_lock_request, [LOCKS]),
        Target("rocketmq-sessions", conversation, run, (), 0.5, seconds=3),
    ]


def _reading(name: str, read: object, corpus: list[bytes]) -> Target:
    assert callable(read)
    return Target(name, lambda chance: mutated(chance, corpus, WORDS), read, (ProtocolError,), 0.3)


def conversation(chance: Random) -> bytes:
    """Return requests of all kinds, some of them changed."""
    codes = sorted(HANDLERS)
    frames = []
    for number in range(chance.randint(1, 12)):
        fields = {name: value for name, value in FIELDS.items() if chance.random() < 0.9}
        if chance.random() < 0.5:
            name = chance.choice(sorted(FIELDS))
            fields[name] = mutated(chance, [FIELDS[name].encode()], WORDS).decode(
                "utf-8", "replace"
            )
        body = chance.choice(BODIES)
        body = mutated(chance, [body], WORDS) if chance.random() < 0.3 else body
        flag = chance.choice((0, 0, 0, 1, 2))
        encoding = chance.choice((JSON, BINARY))
        code = chance.choice(codes)
        try:
            frame = encode(Command(code, number, flag, fields, body, encoding=encoding))
        except ProtocolError:
            continue
        if chance.random() < 0.1:
            changed = mutated(chance, [frame[4:]], changes=2)
            frame = struct.pack(">i", len(changed)) + changed
        frames.append(frame)
    return b"".join(frames)


def run(data: bytes) -> None:
    """Play a conversation; another client must not notice anything."""
    broker = Broker(MemoryStore(), "fuzz", "ID:fuzz", PolicyMap(), BrokerSettings(), START)
    broker.recover()
    now = START
    stranger, other = (RocketMQSession(broker, SETTINGS, f"tcp://10.0.0.{n}:1") for n in (1, 2))
    sent = {"producerGroup": "B", "topic": "BYSTANDER", "queueId": "0"}
    for at, later in zip(range(0, len(data) + 1, 1 + len(data) // 4), LATER_MS * 2, strict=False):
        stranger.receive_data(data[at : at + 1 + len(data) // 4])
        now += later
        _turn(broker, now, stranger, other)
    other.receive_data(encode(Command(10, 1, 0, sent, b"m")))
    said = _turn(broker, now, stranger, other)
    if other.closing or decode(said[4 : 4 + int.from_bytes(said[:4], "big")]).code != 0:
        raise WrongError("another client's message was not taken")
    if broker.containment.records:
        raise WrongError(f"unexpected: {[*broker.containment.records]}")
    for session in (stranger, other):
        session.connection_lost()
    _turn(broker, now + 1, stranger, other)
    if broker.connections or broker.memory.partial or broker.streams.waiting_reads:
        raise WrongError("something is left of connections that ended")


def _turn(broker: Broker, now: int, stranger: RocketMQSession, other: RocketMQSession) -> bytes:
    """Have turns of the loop; returns what *other* is sent."""
    said = b""
    for _ in range(TURNS):
        broker.tick(now, now)
        broker.settle(broker.store.flush())
        stranger.data_to_send()
        said += b"".join(bytes(piece) for piece in other.data_to_send())
    return said
