"""Tables over the journals of a real ActiveMQ say what its manifests say."""

import json
from collections import Counter

import pytest
from journal_maker import rows_of

DIRECTORIES = ("amq-5.17.2-crash", "amq-5.17.2-clean", "amq-6.1.7-crash", "amq-6.1.7-clean")


@pytest.fixture(params=DIRECTORIES)
def directory(request, golden):
    return golden / request.param


@pytest.fixture
def truth(directory):
    return json.loads((directory.parent / f"{directory.name}.manifest.json").read_text())


def served(truth):
    """Return the ids that ActiveMQ served after a replay, by queue or by subscription."""
    found = {}
    for place, messages in truth["recovered_after_index_deletion"].items():
        if place != "xa_recover":
            name = ":".join(place.split(":")[1:3]) if place.startswith("sub:") else place
            found[name] = [message["id"] for message in messages]
    return found


def test_pending_messages_are_those_that_activemq_served_in_their_order(directory, truth):
    found = {}
    for row in rows_of(directory, table="messages"):
        for holder in row["waiting_for"] or [row["destination"]]:
            if row["outcome"] == "pending":
                found.setdefault(holder, []).append(row["message_id"])
    assert found == served(truth)


def test_each_message_has_the_outcome_that_was_brought_about(directory, truth):
    rows = rows_of(directory, table="messages", columns="message_id,outcome,destination")
    outcome = {row["message_id"]: row["outcome"] for row in rows}
    for identifier in truth["GOLD.ACKED"]["remaining"]:
        assert outcome[identifier] == "pending"
    for name, expected in (
        (truth["GOLD.ACKED"]["acked"], "acknowledged"),
        (truth["GOLD.TX"]["tx_acked"], "acknowledged"),
        (truth["GOLD.TX"]["rolled_back"], "rolled_back"),
        ([truth["xa_prepared_add"]["message"], truth["xa_prepared_ack"]["message"]], "in_doubt"),
    ):
        assert {outcome.get(each, expected) for each in name} == {expected}
    in_flight = truth["GOLD.TX"]["inflight_at_snapshot"]
    ended = "rolled_back" if directory.name.endswith("clean") else "open"
    assert {outcome[each] for each in in_flight} == {ended}
    assert len(outcome) == len(rows)


def test_every_acknowledgement_is_a_row_but_those_in_doubt(directory, truth):
    acks = rows_of(directory, table="acks")
    found = Counter(row["destination"] for row in acks)
    assert found["GOLD.ACKED"] == len(truth["GOLD.ACKED"]["acked"])
    assert found["GOLD.BULK"] == truth["GOLD.BULK"]["consumed"]
    assert truth["xa_prepared_ack"]["message"] not in {row["message_id"] for row in acks}
    for row in acks:
        assert row["acked_at_latest"] is None or row["acked_at_earliest"] <= row["acked_at_latest"]
        assert row["stored_at"] is None or row["latency_at_least_ms"] >= 0
    for told in truth["GOLD.TOPIC"]["subscriptions"]:
        key = f"{told['client_id']}:{told['name']}"
        mine = [row for row in acks if row["subscription"] == key]
        done = {row["message_id"] for row in mine if row["outcome"] == "acknowledged"}
        assert done >= set(told["acked"])


def test_subscriptions_are_told_with_selector_and_backlog(directory, truth):
    rows = {row["subscription"]: row for row in rows_of(directory, table="subscriptions")}
    waiting = served(truth)
    live = {key: row for key, row in rows.items() if row["state"] == "live"}
    assert live.keys() == {"client-1:sub-all", "client-1:sub-sel"}
    assert {key: row["pending"] for key, row in live.items()} == {
        key: len(waiting[key]) for key in live
    }
    selective = live["client-1:sub-sel"]
    assert (selective["selector"], selective["no_local"]) == ("color = 'red'", True)
    assert live["client-1:sub-all"]["selector"] is None
    for key, row in rows.items():
        assert key in live or (key, row["state"]) == ("client-1:sub-gone", "deleted")


def test_destinations_count_what_is_there(directory, truth):
    rows = {row["destination"]: row for row in rows_of(directory, table="destinations")}
    for name, identifiers in served(truth).items():
        if name in rows and not name.startswith("client"):
            assert rows[name]["pending"] == len(identifiers), name
    assert rows["GOLD.XA"]["in_doubt"] == 1
    assert rows["GOLD.TOPIC"]["subscriptions"] == 2


def test_prepared_transactions_are_those_that_activemq_listed(directory, truth):
    rows = rows_of(directory, table="transactions")
    prepared = [row for row in rows if row["outcome"] == "prepared"]
    assert len(prepared) == len(truth["recovered_after_index_deletion"]["xa_recover"])
    assert {(row["kind"], row["adds"], row["removes"]) for row in prepared} == {
        ("xa", 1, 0),
        ("xa", 0, 1),
    }
    outcomes = Counter((row["kind"], row["outcome"]) for row in rows)
    is_clean = directory.name.endswith("clean")
    assert outcomes["local", "open"] == (0 if is_clean else 1)


def test_files_tell_what_keeps_them(directory):
    rows = rows_of(directory, table="files")
    assert [row["file_id"] for row in rows] == sorted(row["file_id"] for row in rows)
    assert [row["is_current"] for row in rows] == [False] * (len(rows) - 1) + [True]
    for row in rows:
        assert bool(row["pinned_by"]) is not row["freed_by_cleanup"]
        assert sum(dict(row["live_by_destination"]).values()) == row["live_messages"]
    if directory.name.endswith("clean"):
        # What ActiveMQ left at a clean stop, right after its own clean-up, is needed.
        assert not any(row["freed_by_cleanup"] for row in rows)
    elif "crash" in directory.name:
        assert {row["file_id"] for row in rows if row["freed_by_cleanup"]} == {2, 3}


def test_each_column_is_the_same_alone_as_among_all(directory):
    for table in ("messages", "acks", "transactions"):
        together = rows_of(directory, table=table)
        for column in together[0]:
            alone = rows_of(directory, table=table, columns=column)
            assert [row[column] for row in alone] == [row[column] for row in together], column
