"""Texts that Java cut within a character, and characters that take two surrogates."""

import pytest
from journal_maker import ORDERS, START, JournalMaker, rows_of
from random_journal import framed
from test_bulk import one_by_one

from lockkeeper.journal.records import AddMessage, RemoveMessage, Subscription, Trace
from lockkeeper.message.destination import queue, topic
from lockkeeper.message.ids import MessageId, ProducerId
from lockkeeper.message.openwire import (
    AckType,
    ActiveMQMapMessage,
    ActiveMQTextMessage,
    ConsumerId,
    MessageAck,
    SubscriptionInfo,
)
from lockkeeper.message.openwire.wiretypes import Throwable
from lockkeeper.message.primitives import encode_map
from lockkeeper_analytics.sql.query import run

HALF, SHOWN = "cut \ud83d", "cut \ufffd"
FACE = "\U0001f600"


@pytest.fixture
def maker(tmp_path):
    return JournalMaker(tmp_path / "journal")


@pytest.mark.parametrize("corrupt", ["fail", "skip"])
@pytest.mark.parametrize(
    ("fields", "column", "shown"),
    [
        ({"correlation_id": HALF}, "correlation_id", SHOWN),
        ({"group_id": HALF}, "group_id", SHOWN),
        ({"type": HALF}, "jms_type", SHOWN),
        ({"user_id": HALF}, "user_id", SHOWN),
        ({"reply_to": queue(HALF)}, "reply_to", f"queue://{SHOWN}"),
        ({"original_destination": queue(HALF)}, "original_destination", f"queue://{SHOWN}"),
        ({"properties": {"note": HALF, "n": 1}}, "properties", [("note", SHOWN), ("n", "1")]),
        ({"properties": {HALF: FACE}}, "properties", [(SHOWN, FACE)]),
        ({"properties": dict.fromkeys(("\ud83d", "\ude00"), 1)}, "properties", [("\ufffd", "1")]),
        ({"properties": {"dlqDeliveryFailureCause": HALF}}, "dead_letter_cause", SHOWN),
    ],
)
def test_half_a_character_is_shown_as_one_that_is_missing(
    maker, monkeypatch, fields, column, shown, corrupt
):
    maker.add(1, 0, **fields).add(2, 1, user_id=FACE).flush()
    rows = rows_of(maker.directory, corrupt=corrupt)
    assert rows == one_by_one(maker.directory, monkeypatch, corrupt=corrupt)
    assert rows[0][column] == shown
    assert rows[1]["user_id"] == FACE
    assert len(rows_of(maker.directory, table="messages")) == 2


def test_bodies_acknowledgements_and_subscriptions_are_shown_so_too(maker):
    producer = ProducerId("ID:maker-1:1", 1, 1)
    for number, made in enumerate(
        (
            ActiveMQTextMessage(
                content=len(HALF.encode("utf-8", "surrogatepass")).to_bytes(4, "big")
                + HALF.encode("utf-8", "surrogatepass")
            ),
            ActiveMQMapMessage(content=encode_map({"a": HALF})),
        ),
        1,
    ):
        made.message_id, made.destination = MessageId(producer, number, number), ORDERS
        made.producer_id, made.broker_in_time = producer, START
        maker.record(AddMessage(ORDERS, f"{producer}:{number}", framed(made)))
    ack = MessageAck(
        destination=ORDERS,
        ack_type=AckType.POISON,
        consumer_id=ConsumerId(HALF, 1, 1),
        poison_cause=Throwable("E", HALF),
    )
    maker.record(RemoveMessage(ORDERS, f"{producer}:1", framed(ack), None))
    info = SubscriptionInfo(client_id="ann", destination=topic("T"), selector=f"a = '{HALF}'")
    maker.record(Subscription(topic("T"), "ann:s", None, framed(info))).flush()
    first, second, acked, subscribed = rows_of(maker.directory, body="true")
    assert (first["body"], second["body"]) == (SHOWN, f'{{"a": "{SHOWN}"}}')
    assert (acked["consumer_id"], acked["ack_cause"]) == (f"{SHOWN}:1:1", SHOWN)
    assert subscribed["selector"] == f"a = '{SHOWN}'"


def test_lines_of_the_flight_recorder_are_shown_so_too(maker):
    maker.line("event", 0, event="connectionOpened", clientId=HALF, address=FACE)
    maker.record(
        Trace(f'lk1 {{"t":"stats","at":{START},"destinations":{{"queue://\\ud83d":{{}}}}}}')
    )
    maker.flush()
    (event,) = rows_of(maker.directory, table="events")
    assert (event["client_id"], event["address"]) == (SHOWN, FACE)
    (line,) = rows_of(maker.directory, table="statistics")
    assert line["destination"] == "\ufffd"


def test_reports_and_queries_show_them_so(maker):
    maker.add(1, 0, group_id=HALF).flush()
    (batch,) = (each for each in run("FROM skew_report", {"path": str(maker.directory)}) if each)
    assert SHOWN in str(batch.to_pylist())


@pytest.mark.parametrize("connection", [f"ID:{FACE}-1", "ID:\0-1", "ID:\ud83d-1"])
def test_a_producer_is_one_however_its_messages_are_laid_out(maker, monkeypatch, connection):
    producer = ProducerId(connection, 1, 1)
    for number, correlation in enumerate((None, "x", None), 1):
        made = ActiveMQTextMessage(
            producer_id=producer,
            destination=ORDERS,
            message_id=MessageId(producer, number, number),
            correlation_id=correlation,
            broker_in_time=START,
        )
        maker.record(AddMessage(ORDERS, f"ID:a:{number}", framed(made)))
    maker.flush()
    shown = str(producer).replace("\ud83d", "\ufffd")
    rows = rows_of(maker.directory, columns="producer_id")
    assert [row["producer_id"] for row in rows] == [shown] * 3
    assert one_by_one(maker.directory, monkeypatch, columns="producer_id") == rows
