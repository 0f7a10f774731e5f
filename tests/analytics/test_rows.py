"""A row for each record: what an independent reader listed of ActiveMQ's journals."""

import json
from collections import Counter
from datetime import UTC, datetime
from typing import Any

import pytest
from journal_maker import JournalMaker, rows_of

from lockkeeper.journal.records import RemoveDestination
from lockkeeper.message.destination import queue, topic
from lockkeeper_analytics.reading.schema import BODY_COLUMNS, COLUMNS, DEFAULT_COLUMNS

DIRECTORIES = ("amq-5.17.2-crash", "amq-5.17.2-clean", "amq-6.1.7-crash", "amq-6.1.7-clean")
KINDS = {"sub": "subscribe", "audit": "audit", "ackmap": "ack_map"}


def listed(golden, name):
    """Return place, kind, destination, id and transaction of every record that was listed."""
    found = []
    for line in (golden / f"{name}.records.jsonl").read_text().splitlines():
        row = json.loads(line)
        if row["kind"] == "rec":
            fields = row["fields"]
            kind = KINDS.get(row["command"], row["command"])
            if kind == "subscribe" and "subscriptionInfo" not in fields:
                kind = "unsubscribe"
            destination = fields.get("destination") or {}
            found.append(
                {
                    "file": row["file"],
                    "offset": row["offset"],
                    "record_bytes": row["size"],
                    "kind": kind,
                    "destination_kind": destination.get("type"),
                    "destination": destination.get("name"),
                    "message_id": fields.get("messageId"),
                    "subscription": fields.get("subscriptionKey"),
                    "transaction": transaction(fields.get("transaction_info")),
                    "ack_type": ack_type(fields.get("ack")),
                }
            )
    return found


def transaction(info):
    if not info:
        return None
    if "local" in info:
        return f"TX:{info['local']['connection_id']}:{info['local']['transaction_id']}"
    xa = info["xa"]
    ids = f"globalId={xa['global_transaction_id']},branchId={xa['branch_qualifier']}"
    return f"XID:[{xa['format_id']},{ids}]"


def ack_type(ack):
    names = {2: "standard", 4: "individual", 5: "unmatched"}
    if ack and not ack["frame_len"]:
        # So ActiveMQ writes that a subscription's selector did not match.
        return "unmatched"
    return names[ack["frame"]["ackType"]] if ack and ack.get("frame") else None


@pytest.mark.parametrize("name", DIRECTORIES)
def test_every_record_is_a_row_in_its_place(golden, name):
    expected = listed(golden, name)
    rows = rows_of(golden / name, columns=",".join(expected[0]))
    order = {row["file"]: int(row["file"][3:-4]) for row in rows}
    assert rows == expected
    assert [order[row["file"]] for row in rows] == sorted(order[row["file"]] for row in rows)


@pytest.mark.parametrize("name", DIRECTORIES)
def test_each_column_is_the_same_alone_as_among_all(golden, name):
    together = rows_of(golden / name, body="true")
    for column in COLUMNS:
        alone = rows_of(golden / name, columns=column)
        assert [row[column] for row in alone] == [row[column] for row in together], column


@pytest.fixture(scope="module")
def sent(request):
    """Pairs of a row and what the program that sent the message said of it."""
    golden = request.path.parents[1] / "golden" / "kahadb"
    manifest = json.loads((golden / "amq-5.17.2-crash.manifest.json").read_text())
    told = {row["id"]: row for row in manifest["queues_by_browse_before_snapshot"]["GOLD.TYPES"]}
    rows = rows_of(golden / "amq-5.17.2-crash", destination="GOLD.TYPES", body="true")
    return [(row, told[row["message_id"]]) for row in rows if row["kind"] == "add"]


def moment(milliseconds: int) -> datetime | None:
    return datetime.fromtimestamp(milliseconds / 1000, UTC) if milliseconds else None


def test_headers_are_those_that_were_sent(sent):
    assert len(sent) == 17
    for row, told in sent:
        kind = told["class"].removeprefix("ActiveMQ").removesuffix("Message").lower()
        assert row["message_type"] == (kind or "message")
        assert row["sent_at"] == moment(told["timestamp"])
        assert row["expires_at"] == moment(told["expiration"])
        assert row["stored_at"] >= row["sent_at"]
        assert (row["priority"], row["persistent"]) == (told["priority"], told["persistent"])
        assert (row["compressed"], row["redeliveries"]) == (told["compressed"], 0)
        for column in ("correlation_id", "reply_to", "jms_type", "group_id"):
            assert row[column] == told.get(column)
        assert row["group_sequence"] == told.get("group_seq")
        assert row["message_id"] == f"{row['producer_id']}:{told['producer_seq']}"


def test_properties_are_text(sent):
    rows = [
        (dict(row["properties"]), told["properties"])
        for row, told in sent
        if "properties" in told and "group_id" not in told
    ]
    assert rows
    for found, told in rows:
        assert set(found) == set(told)
        for name, value in told.items():
            if value["type"] in ("Boolean", "Integer", "Long", "Short", "Byte", "String"):
                assert found[name] == value["value"], name


def test_bodies_are_decoded_and_inflated(sent):
    checked: Counter[str] = Counter()
    for row, told in sent:
        checked[row["message_type"]] += 1
        if row["message_type"] == "text":
            assert (row["body"], row["content"]) == (told["body"], None)
        elif row["message_type"] == "bytes":
            assert (row["body"], row["content"].hex()) == (None, told["body_hex"])
        elif row["message_type"] == "map":
            assert set(json.loads(row["body"])) == set(told["body_map"])
        elif row["message_type"] == "stream":
            assert len(json.loads(row["body"])) == len(told["body_stream"])
        elif row["message_type"] == "object":
            assert row["content"].startswith(b"\xac\xed")
        else:
            assert (row["body"], row["content"]) == (None, None)
    assert set(checked) == {"text", "bytes", "map", "stream", "object", "message"}


def test_a_body_that_inflates_beyond_the_limit_is_left_out(golden):
    rows = rows_of(
        golden / "amq-5.17.2-crash", columns="body,content,compressed", bodyBytesMax="60"
    )
    bodies: list[Any] = [row["body"] or row["content"] for row in rows if row["compressed"]]
    assert bodies
    assert not any(bodies)
    assert any(row["body"] == "hello world" for row in rows)


def test_without_a_wish_all_columns_but_the_bodies_come(golden):
    row = rows_of(golden / "prealloc-none")[0]
    assert tuple(row) == DEFAULT_COLUMNS
    assert set(COLUMNS) - set(row) == set(BODY_COLUMNS)


def test_dead_letters_tell_cause_origin_and_redeliveries(tmp_path):
    maker = JournalMaker(tmp_path)
    maker.add(
        1,
        0,
        properties={"dlqDeliveryFailureCause": "no such customer", "n": 7},
        destination=queue("DLQ"),
        original_destination=queue("ORDERS"),
        redelivery_counter=6,
    )
    maker.add(2, 1, user_id="ann").flush()
    dead, plain = rows_of(tmp_path)
    assert dead["dead_letter_cause"] == "no such customer"
    assert dead["original_destination"] == "queue://ORDERS"
    assert dead["redeliveries"] == 6
    assert dict(dead["properties"])["n"] == "7"
    assert (plain["dead_letter_cause"], plain["user_id"]) == (None, "ann")


def test_a_message_that_was_sent_back_tells_its_first_id(tmp_path):
    maker = JournalMaker(tmp_path)
    sent_back = {"lockkeeper_retry_of": "ID:first:1"}
    maker.add(1, 0, properties=sent_back).add(2, 1, properties={"n": 1}).flush()
    maker.add(3, 2, properties=sent_back, correlation_id="x").flush()
    assert [row["retry_of"] for row in rows_of(tmp_path)] == ["ID:first:1", None, "ID:first:1"]


def test_only_destinations_asked_for_come_and_what_belongs_to_none(tmp_path):
    maker = JournalMaker(tmp_path)
    places = (queue("A"), queue("A.B"), queue("A.B.C"), topic("A.B"))
    for number, destination in enumerate(places):
        maker.add(number, number, destination)
    maker.clock(9).flush()

    def names(pattern):
        columns = "destination_kind,destination"
        rows = rows_of(tmp_path, destination=pattern, columns=columns)
        return [(row["destination_kind"], row["destination"]) for row in rows[:-1]]

    assert names("A.*") == [("queue", "A.B"), ("topic", "A.B")]
    assert names("queue://A.>") == [("queue", "A"), ("queue", "A.B"), ("queue", "A.B.C")]
    assert names("topic://>,A") == [("queue", "A"), ("topic", "A.B")]
    assert rows_of(tmp_path, destination="NOBODY")[0]["kind"] == "trace"


def test_other_traces_and_removed_destinations_are_told(tmp_path):
    maker = JournalMaker(tmp_path)
    maker.record(RemoveDestination(queue("A"))).clock(5).flush()
    gone, clock = rows_of(tmp_path, columns="kind,destination,trace,recorder")
    assert (gone["kind"], gone["destination"]) == ("remove_destination", "A")
    assert (clock["trace"], json.loads(clock["recorder"])["t"]) == (None, "clock")
