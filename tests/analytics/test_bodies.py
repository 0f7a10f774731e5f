"""Fields of bodies: a sample of each destination, by format, without a value; only if asked for."""

import json

import pyarrow.parquet as pq
import pytest
from journal_maker import JournalMaker, rows_of
from journal_reports import page_of, reports_of

from lockkeeper.journal.records import AddMessage
from lockkeeper.message.destination import queue
from lockkeeper.message.ids import MessageId
from lockkeeper.message.openwire import ActiveMQBytesMessage, encode
from lockkeeper_analytics.job import known_reports

ORDERS, EVENTS = queue("ORDERS"), queue("EVENTS")
SECRET = "4111-1111"


def marshalled(text):
    octets = text.encode()
    return len(octets).to_bytes(4, "big") + octets


@pytest.fixture(scope="module")
def journal(tmp_path_factory):
    """Return a journal with three orders as JSON, a plain text, and two events as XML in bytes."""
    from journal_maker import PRODUCER, START, message_id

    maker = JournalMaker(tmp_path_factory.mktemp("bodies") / "journal")
    orders = [
        {"id": 1, "card": SECRET, "lines": [{"n": 1}]},
        {"id": "2", "lines": []},
        {"id": 3, "card": SECRET, "lines": [{"n": 2}, {"n": 2.5}]},
    ]
    texts = [*map(json.dumps, orders), f"a note on {SECRET}"]
    for number, text in enumerate(texts):
        maker.add(number, number, ORDERS, content=marshalled(text))
    for number in (10, 11):
        octets = f"<event at='2026-11-20'><card>{SECRET}</card></event>".encode()
        made = ActiveMQBytesMessage(
            producer_id=PRODUCER,
            destination=EVENTS,
            message_id=MessageId(PRODUCER, number, number),
            persistent=True,
            content=octets,
            broker_in_time=START + number,
        )
        frame = encode(made, 11)
        content = len(frame).to_bytes(4, "big") + frame
        maker.record(AddMessage(EVENTS, message_id(number), content))
    maker.remove(0).flush()
    return maker.directory


def told(rows):
    return {
        (row["destination"], row["format"], row["field"]): (row["types"], row["messages"])
        for row in rows
    }


def test_fields_are_told_by_destination_and_format(journal):
    rows = reports_of(journal, names=["bodies"])["bodies"]
    assert told(rows) == {
        ("ORDERS", "json", "$"): ("object", 3),
        ("ORDERS", "json", "$.card"): ("string", 2),
        ("ORDERS", "json", "$.id"): ("integer, string", 3),
        ("ORDERS", "json", "$.lines"): ("array", 3),
        ("ORDERS", "json", "$.lines[*]"): ("object", 2),
        ("ORDERS", "json", "$.lines[*].n"): ("integer, number", 2),
        ("ORDERS", "text", "$"): ("text", 1),
        ("EVENTS", "xml", "$"): ("document", 2),
        ("EVENTS", "xml", "/event"): ("element", 2),
        ("EVENTS", "xml", "/event/@at"): ("string (date)", 2),
        ("EVENTS", "xml", "/event/card"): ("string", 2),
    }
    shares = {row["field"]: row["share"] for row in rows if row["format"] == "json"}
    assert shares["$.card"] == pytest.approx(2 / 3)
    page = page_of({"bodies": rows}, journal)
    assert "$.lines[*].n" in page and SECRET not in page


def test_a_sample_is_bounded_and_masks_hide(journal):
    rows = rows_of(journal, table="body_fields", bodySamples="1", bodyMask="*card,$.lines")
    assert SECRET not in json.dumps(rows)
    fields = {(row["destination"], row["field"]): row["messages"] for row in rows}
    assert fields == {
        ("ORDERS", "$"): 1,
        ("ORDERS", "$.id"): 1,
        ("ORDERS", "$.***"): 1,
        ("EVENTS", "$"): 1,
        ("EVENTS", "/event"): 1,
        ("EVENTS", "/event/@at"): 1,
        ("EVENTS", "/event/***"): 1,
    }


def test_only_destinations_asked_for_are_looked_at(journal):
    rows = rows_of(journal, table="body_fields", destination="EVENTS")
    assert {row["destination"] for row in rows} == {"EVENTS"}


def test_nobody_gets_the_report_who_has_not_asked():
    assert "bodies" not in known_reports([])
    assert "bodies" in known_reports([], bodies=True)
    assert known_reports(["totals"], bodies=True) == ("totals", "bodies")
    assert known_reports(["bodies"]) == ("bodies",)


@pytest.mark.spark
@pytest.mark.slow
def test_the_command_tells_them_by_spark(journal, tmp_path, command):
    options = ("--out", tmp_path, "--report", "bodies", "--mask", "*.card")
    code, _, said = command(journal, *options)
    assert code == 0, said
    found = told(pq.read_table(tmp_path / "bodies.parquet").to_pylist())
    assert found["ORDERS", "json", "$.***"] == ("hidden", 2)
    assert found["ORDERS", "json", "$.id"] == ("integer, string", 3)
    for file in tmp_path.iterdir():
        assert SECRET.encode() not in file.read_bytes()
