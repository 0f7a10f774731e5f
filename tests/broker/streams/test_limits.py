"""Limits on what clients send, and streams that are the broker's own."""

import pytest
from streams_kit import Bench, DiskBench, only

from lockkeeper.broker.errors import BrokerError
from lockkeeper.broker.streams.delays import DELAY_STREAM
from lockkeeper.broker.streams.drafts import Draft
from lockkeeper.broker.streams.outputs import Done
from lockkeeper.broker.streams.settings import (
    Retention,
    StreamSettings,
)

SECOND = 1_000


def test_groups_of_producers_are_limited(bench: Bench) -> None:
    client, streams = bench.connect(), bench.broker.streams
    with pytest.raises(BrokerError):
        for number in range(200_000):
            streams.producer_heartbeat(client, f"group-{number}", "client")


def test_properties_are_limited(bench: Bench) -> None:
    client = bench.connect()
    draft = Draft(b"", {"huge": "x" * (40 << 20)})
    with pytest.raises(BrokerError, match="more than 32767"):
        bench.append(client, "orders", draft)


def test_keys_of_one_message_are_limited(disk_bench: DiskBench) -> None:
    client = disk_bench.connect()
    draft = Draft(b"", {"KEYS": " ".join(map(str, range(600_000)))})
    with pytest.raises(BrokerError, match="more than 32767"):
        disk_bench.append(client, "orders", draft)


def test_half_messages_wait_for_the_disk_within_the_limit(bench: Bench) -> None:
    client, streams = bench.connect(), bench.broker.streams
    bench.append(client, "orders", "a")
    body = bytes(4 << 20)
    with pytest.raises(BrokerError, match="pendingBytes"):
        for number in range(20):
            streams.begin_transaction(client, number, "p", "orders", 0, Draft(body))


def test_a_message_given_back_very_often_is_refused_or_set_aside(bench: Bench) -> None:
    client, streams = bench.connect(), bench.broker.streams
    bench.append(client, "orders", Draft(b"a", reconsumed=2**31 - 1))
    streams.send_back(client, "t", "g", "orders", 0, 0)
    bench.settle()
    assert only(client, Done).tag == "t"
    assert bench.bodies(client, "%DLQ%g") == ["a"]


def test_delayed_messages_come_after_the_delay_stream_was_deleted(bench: Bench) -> None:
    client, streams = bench.connect(), bench.broker.streams
    for number in range(5):
        bench.append(client, "orders", f"{number}", delay_level=1)
    bench.tick(2 * SECOND)
    assert len(bench.bodies(client, "orders")) == 5
    with pytest.raises(BrokerError, match="the broker's own"):
        streams.remove(DELAY_STREAM)
    bench.append(client, "orders", "again", delay_level=1)
    bench.tick(60 * SECOND)
    assert bench.bodies(client, "orders")[-1] == "again"


def test_retention_of_a_declaration_never_ends_delayed_messages(bench: Bench) -> None:
    client, streams = bench.connect(), bench.broker.streams
    bench.append(client, "orders", "first", delay_level=18)
    with pytest.raises(BrokerError, match="the broker's own"):
        streams.declare(DELAY_STREAM, StreamSettings(18, Retention(time=60 * SECOND)))
    for _ in range(3):
        bench.tick(600 * SECOND)
        bench.append(client, "orders", "later", delay_level=18)
    bench.tick(7200 * SECOND)
    bench.tick(7200 * SECOND)
    assert bench.bodies(client, "orders")[0] == "first"
