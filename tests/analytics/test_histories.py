"""What became of messages, transactions, subscriptions and files, over journals made by hand."""

import pytest
from journal_maker import ORDERS, START, JournalMaker, message_id, rows_of, transaction
from random_journal import framed

from lockkeeper.journal.decode import decode_record
from lockkeeper.journal.records import (
    Prepare,
    RemoveDestination,
    RemoveMessage,
    Subscription,
    UpdateMessage,
)
from lockkeeper.message.destination import queue, topic
from lockkeeper.message.ids import XATransactionId
from lockkeeper.message.openwire import AckType, MessageAck, SubscriptionInfo

NEWS = topic("NEWS")
DLQ = queue("DLQ")
XA = XATransactionId(7, b"global", b"branch")


@pytest.fixture
def maker(tmp_path):
    return JournalMaker(tmp_path / "journal")


def subscribe(maker, name, selector=None, retroactive=False):
    info = SubscriptionInfo(
        client_id="ann",
        subscription_name=name,
        destination=NEWS,
        subscribed_destination=NEWS,
        selector=selector,
    )
    return maker.record(Subscription(NEWS, f"ann:{name}", retroactive, framed(info)))


def outcomes(maker, **options):
    rows = rows_of(maker.directory, table="messages", **options)
    return [(int(row["message_id"].rpartition(":")[2]), row["outcome"]) for row in rows]


def milliseconds(moment):
    return None if moment is None else round(moment.timestamp() * 1000) - START


def test_a_message_is_pending_until_it_is_acknowledged(maker):
    maker.add(1, 0).add(2, 10).flush().clock(40).remove(1).flush()
    done, there = rows_of(maker.directory, table="messages")
    assert (done["message_id"], done["outcome"]) == (message_id(1), "acknowledged")
    assert milliseconds(done["ended_earliest"]) == milliseconds(done["ended_latest"]) == 40
    assert (done["life_at_least_ms"], done["life_at_most_ms"]) == (40, 40)
    assert (there["outcome"], there["ended_earliest"]) == ("pending", None)
    (ack,) = rows_of(maker.directory, table="acks")
    assert (ack["is_exact"], ack["latency_at_most_ms"], ack["message_file_id"]) == (True, 40, 1)


def test_without_a_clock_an_acknowledgement_has_bounds(maker):
    maker.add(1, 100).flush().remove(1).flush().add(2, 700).flush()
    (ack,) = rows_of(maker.directory, table="acks")
    assert not ack["is_exact"]
    bounds = (ack["acked_at_earliest"], ack["acked_at_latest"])
    assert [milliseconds(bound) for bound in bounds] == [100, 700]


@pytest.mark.parametrize("copy_comes_first", [True, False])
def test_a_dead_letter_is_told_where_it_was_meant_for(maker, copy_comes_first):
    def copy():
        cause = {"dlqDeliveryFailureCause": "no such customer"}
        maker.add(1, 500, DLQ, properties=cause, original_destination=ORDERS)

    maker.add(1, 0).add(2, 1).flush()
    if copy_comes_first:
        copy()
    maker.remove(1).remove(2).flush()
    if not copy_comes_first:
        copy()
        maker.flush()
    rows = {
        (row["destination"], row["message_id"]): row
        for row in rows_of(maker.directory, table="messages")
    }
    died = rows["ORDERS", message_id(1)]
    assert died["outcome"] == "dead_lettered"
    assert died["dead_letter_destination"] == "queue://DLQ"
    assert died["end_cause"] == "no such customer"
    assert rows["ORDERS", message_id(2)]["outcome"] == "acknowledged"
    dead = rows["DLQ", message_id(1)]
    assert (dead["outcome"], dead["original_destination"]) == ("pending", "queue://ORDERS")
    (orders, _) = rows_of(maker.directory, table="destinations")
    assert (orders["dead_lettered"], orders["acknowledged"], orders["pending"]) == (1, 1, 0)
    acks = rows_of(maker.directory, table="acks", columns="outcome")
    assert [ack["outcome"] for ack in acks] == ["dead_lettered", "acknowledged"]


def test_a_cause_that_speaks_of_expiry_means_expired(maker):
    cause = {"dlqDeliveryFailureCause": "The message has expired"}
    maker.add(1, 0).add(1, 5, DLQ, properties=cause, original_destination=ORDERS).remove(1).flush()
    assert outcomes(maker, destination="ORDERS") == [(1, "expired")]


@pytest.mark.parametrize(
    ("kind", "outcome"),
    [
        (AckType.STANDARD, "acknowledged"),
        (AckType.EXPIRED, "expired"),
        (AckType.POISON, "dead_lettered"),
    ],
)
def test_an_acknowledgement_that_is_written_tells_the_outcome(maker, kind, outcome):
    ack = framed(MessageAck(destination=ORDERS, ack_type=kind, message_count=1))
    maker.add(1, 0).record(RemoveMessage(ORDERS, message_id(1), ack)).flush()
    assert outcomes(maker) == [(1, outcome)]


def test_a_second_add_is_a_duplicate_and_a_later_one_a_message(maker):
    maker.add(1, 0).add(1, 1).remove(1).add(1, 2).flush()
    assert outcomes(maker) == [(1, "duplicate"), (1, "acknowledged"), (1, "pending")]


def test_a_message_that_comes_back_twice_ends_three_times(maker):
    maker.add(1, 0).remove(1).add(1, 10).remove(1).add(1, 20).remove(1).flush()
    assert outcomes(maker) == [(1, "acknowledged")] * 3


def test_transactions_decide(maker):
    done, undone, unfinished = transaction(1), transaction(2), transaction(3)
    maker.add(1, 0).add(2, 1).flush()
    maker.add(3, 2, tx=done).remove(1, tx=done).flush()
    maker.add(4, 3, tx=undone).remove(2, tx=undone).rollback(undone).flush()
    maker.add(5, 4, tx=unfinished).remove(2, tx=unfinished).flush()
    maker.clock(900).commit(done).flush()
    told = dict(outcomes(maker))
    assert told == {1: "acknowledged", 2: "pending", 3: "pending", 4: "rolled_back", 5: "open"}
    (ack,) = rows_of(maker.directory, table="acks")
    assert milliseconds(ack["acked_at_earliest"]) == 900
    assert ack["transaction"] == str(done)
    rows = rows_of(maker.directory, table="transactions")
    figures = [(row["outcome"], row["adds"], row["removes"]) for row in rows]
    assert figures == [("rolled_back", 1, 1), ("committed", 1, 1), ("open", 1, 1)]
    assert milliseconds(rows[1]["ended_latest"]) == 900
    assert rows[2]["ended_latest"] is None


def test_a_prepared_transaction_leaves_messages_in_doubt(maker):
    maker.add(1, 0).add(2, 1).flush().remove(1, tx=XA).add(3, 2, tx=XA)
    maker.record(Prepare(XA)).flush()
    assert sorted(outcomes(maker)) == [(1, "in_doubt"), (2, "pending"), (3, "in_doubt")]
    (row,) = rows_of(maker.directory, table="transactions")
    assert (row["outcome"], row["kind"], row["files"]) == ("prepared", "xa", [1])
    assert rows_of(maker.directory, table="acks") == []


def test_a_topic_keeps_a_message_until_every_subscription_is_done(maker):
    maker.add(1, 0, NEWS)
    subscribe(maker, "a", "size > 3")
    subscribe(maker, "b")
    maker.add(2, 1, NEWS).add(3, 2, NEWS).flush()
    unmatched = framed(MessageAck(destination=NEWS, ack_type=AckType.UNMATCHED, message_count=1))
    maker.record(RemoveMessage(NEWS, message_id(2), unmatched, "ann:a"))
    maker.remove(2, NEWS, subscription="ann:b").remove(3, NEWS, subscription="ann:b")
    maker.clock(5).flush()
    rows = {row["message_id"]: row for row in rows_of(maker.directory, table="messages")}
    assert rows[message_id(1)]["outcome"] == "unwanted"
    assert rows[message_id(2)]["acknowledged_by"] == ["ann:a", "ann:b"]
    assert rows[message_id(2)]["outcome"] == "acknowledged"
    assert rows[message_id(3)]["waiting_for"] == ["ann:a"]
    assert rows[message_id(3)]["acknowledged_by"] == ["ann:b"]
    assert rows[message_id(3)]["ended_latest"] is None
    assert len(rows_of(maker.directory, table="messages", since=str(START + 60_000))) == 1
    one, other = rows_of(maker.directory, table="subscriptions")
    assert (one["selector"], one["pending"], one["unmatched"]) == ("size > 3", 1, 1)
    assert (other["pending"], other["acknowledged"], other["state"]) == (0, 2, "live")


def test_what_waits_for_a_subscription_goes_with_it(maker):
    subscribe(maker, "a").add(1, 0, NEWS).clock(5).flush()
    maker.record(Subscription(NEWS, "ann:a")).clock(60).flush()
    assert outcomes(maker) == [(1, "dropped")]
    (row,) = rows_of(maker.directory, table="messages")
    assert milliseconds(row["ended_earliest"]) == 60
    (row,) = rows_of(maker.directory, table="subscriptions")
    assert (row["state"], milliseconds(row["ended_latest"])) == ("deleted", 60)


def test_a_subscription_that_is_made_again_begins_anew_unless_it_is_retroactive(maker):
    subscribe(maker, "a").add(1, 0, NEWS)
    subscribe(maker, "a", retroactive=True).add(2, 1, NEWS).flush()
    assert outcomes(maker) == [(1, "pending"), (2, "pending")]
    subscribe(maker, "a").add(3, 2, NEWS).flush()
    assert outcomes(maker) == [(1, "dropped"), (2, "dropped"), (3, "pending")]
    states = [row["state"] for row in rows_of(maker.directory, table="subscriptions")]
    assert states == ["replaced", "replaced", "live"]


def test_a_removed_destination_takes_everything_along(maker):
    maker.add(1, 0)
    subscribe(maker, "a").add(2, 1, NEWS).flush()
    maker.record(RemoveDestination(ORDERS)).record(RemoveDestination(NEWS)).add(3, 9).flush()
    assert outcomes(maker) == [(1, "dropped"), (2, "dropped"), (3, "pending")]
    places = {row["destination"]: row for row in rows_of(maker.directory, table="destinations")}
    assert (places["ORDERS"]["is_removed"], places["NEWS"]["is_removed"]) == (False, True)
    assert places["ORDERS"]["dropped"] == 1


def test_an_update_moves_a_message_and_changes_what_it_says(maker):
    maker.add(1, 0).add(2, 1).flush().roll()
    other = JournalMaker(maker.directory.parent / "other")
    other.add(1, 0, redelivery_counter=3)
    maker.record(UpdateMessage(decode_record(other.waiting[0]))).flush()
    first, second = rows_of(maker.directory, table="messages")
    assert (first["message_id"], first["redeliveries"], first["file_id"]) == (message_id(1), 3, 2)
    assert (second["redeliveries"], second["file_id"]) == (0, 1)


def test_files_are_pinned_by_what_is_in_them_and_by_what_they_end(maker):
    maker.add(1, 0).add(2, 1).flush().roll()
    maker.remove(1).flush().roll()
    maker.add(3, 2).remove(3).flush().roll()
    maker.add(4, 3, tx=XA).record(Prepare(XA)).flush().roll()
    subscribe(maker, "a").flush().roll()
    maker.clock(9).flush()
    rows = rows_of(maker.directory, table="files")
    assert [row["pinned_by"] for row in rows] == [
        ["1 messages of queue://ORDERS"],
        ["acknowledges messages in file 1"],
        [],
        [f"transaction {XA}"],
        ["subscription ann:a"],
        ["it is being written"],
    ]
    assert [row["freed_by_cleanup"] for row in rows] == [False, False, True, False, False, False]
    maker.remove(2).flush()
    freed = [row["freed_by_cleanup"] for row in rows_of(maker.directory, table="files")]
    assert freed == [True, True, True, False, False, False]


def test_archived_files_count_but_keep_nothing(maker):
    maker.add(1, 0).remove(1).flush().roll()
    maker.add(2, 5).flush()
    archive = maker.directory / "data-archive"
    archive.mkdir()
    (maker.directory / "db-1.log").rename(archive / "db-1.log")
    old, current = rows_of(maker.directory, table="files")
    assert (old["is_archived"], old["pinned_by"], old["freed_by_cleanup"]) == (True, [], False)
    assert (current["is_archived"], current["live_messages"]) == (False, 1)
    assert outcomes(maker) == [(1, "acknowledged"), (2, "pending")]


def test_until_tells_everything_as_it_stood_then(maker):
    maker.add(1, 0).clock(0).flush().remove(1).clock(1000).flush().add(2, 2000).clock(2000).flush()
    assert outcomes(maker, until=str(START + 500)) == [(1, "pending")]
    assert outcomes(maker, until=str(START + 1000)) == [(1, "acknowledged")]
    rows = rows_of(maker.directory, until=str(START + 1000), columns="kind")
    assert [row["kind"] for row in rows] == ["add", "trace", "remove", "trace"]


def test_since_leaves_out_what_was_over_before(maker):
    maker.add(1, 0).add(2, 1).add(3, 2).clock(2).flush()
    maker.remove(1).clock(1000).flush().remove(2).clock(2000).flush()
    since = str(START + 1500)
    assert outcomes(maker, since=since) == [(2, "acknowledged"), (3, "pending")]
    acks = rows_of(maker.directory, table="acks", since=since)
    assert [ack["message_id"] for ack in acks] == [message_id(2)]


def test_only_destinations_that_are_asked_for_come(maker):
    maker.add(1, 0).add(2, 1, queue("A.B"), tx=transaction(1)).commit(transaction(1)).flush()
    assert outcomes(maker, destination="A.*") == [(2, "pending")]
    names = [
        row["destination"]
        for row in rows_of(maker.directory, table="destinations", destination="queue://A.>")
    ]
    assert names == ["A.B"]
    assert len(rows_of(maker.directory, table="transactions", destination="A.>")) == 1
    assert rows_of(maker.directory, table="transactions", destination="ORDERS") == []


def test_an_acknowledgement_whose_message_is_in_no_file_is_a_row(maker):
    maker.remove(1).clock(7).flush()
    assert outcomes(maker) == []
    (ack,) = rows_of(maker.directory, table="acks")
    assert (ack["stored_at"], ack["latency_at_least_ms"], ack["message_file_id"]) == (None,) * 3
