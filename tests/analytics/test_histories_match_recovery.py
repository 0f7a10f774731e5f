"""Over random journals, histories say what a broker's own recovery finds in them."""

import random

import pytest
from journal_maker import rows_of
from random_journal import ORDINARY, RandomJournal

from lockkeeper.store.base import Add, Remove
from lockkeeper.store.kahadb.cleanup import collectable
from lockkeeper.store.kahadb.file_references import OFFSET_BITS
from lockkeeper.store.kahadb.recovery import replay_directory

SEEDS, MORE_SEEDS = range(20), range(20, 60)


class OrdinaryJournal(RandomJournal):
    """Has no segments of streams: recovery and tables tell of those in other ways.

    `test_streams_told` compares them.
    """

    places = ORDINARY


def place_of(reference):
    return reference.location >> OFFSET_BITS, reference.location & (1 << OFFSET_BITS) - 1


@pytest.fixture(
    params=[*SEEDS, *(pytest.param(each, marks=pytest.mark.thorough) for each in MORE_SEEDS)]
)
def directory(request, tmp_path):
    chance, drops = random.Random(request.param), request.param % 3 == 0
    return OrdinaryJournal(tmp_path / "journal", chance, drops=drops).write()


def test_what_is_live_is_what_recovery_finds(directory):
    recovered = replay_directory(directory).recovered
    rows = rows_of(directory, table="messages")
    found, waiting = {}, {}
    for row in rows:
        where = (row["file_id"], row["offset"])
        if row["destination_kind"] == "queue" and row["outcome"] == "pending":
            found.setdefault(row["destination"], []).append(where)
        for key in row["waiting_for"]:
            waiting.setdefault((row["destination"], key), []).append(where)
    assert found == {
        place.name: [place_of(one) for one in references]
        for place, references in recovered.queues.items()
        if references
    }
    # A retroactive subscription gets what was there by place, not by commit.
    assert {owner: sorted(places) for owner, places in waiting.items()} == {
        (one.subscription.destination.name, one.subscription.key): sorted(
            place_of(each) for each in one.pending
        )
        for one in recovered.subscriptions
        if one.pending
    }
    in_doubt = {
        place_of(reference)
        for operations in recovered.prepared.values()
        for operation in operations
        for reference in operation.references
        if isinstance(operation, Add | Remove) and operation.destination.is_queue
    }
    assert in_doubt == {
        (row["file_id"], row["offset"])
        for row in rows
        if row["outcome"] == "in_doubt" and row["destination_kind"] == "queue"
    }


def test_other_tables_agree_with_recovery(directory):
    replayed = replay_directory(directory)
    live = [row for row in rows_of(directory, table="subscriptions") if row["state"] == "live"]
    assert {(row["subscription"], row["destination"], row["pending"]) for row in live} == {
        (one.subscription.key, one.subscription.destination.name, len(one.pending))
        for one in replayed.recovered.subscriptions
    }
    transactions = rows_of(directory, table="transactions")
    prepared = {row["transaction"] for row in transactions if row["outcome"] == "prepared"}
    assert prepared == {str(identifier) for identifier in replayed.recovered.prepared}


def test_a_clean_up_would_free_the_files_that_the_table_says(directory):
    references = replay_directory(directory).file_references
    rows = rows_of(directory, table="files")
    freed = {row["file_id"] for row in rows if row["freed_by_cleanup"]}
    current = max(references.files)
    # Open transactions of clients that are gone are rolled back at the start.
    held = {row["file_id"] for row in rows if row["transactions"]}
    going = set(collectable(references.files, references.pinned() | held, current))
    records = rows_of(directory, columns="kind,file_id,subscription")
    # Right after a start the broker is more careful than it need be: with removed destinations,
    # and with acknowledgements of subscriptions that are to another topic meanwhile.
    careful = {row["file_id"] for row in records if row["subscription"]}
    if any(row["kind"] == "remove_destination" for row in records):
        careful = freed
    assert going <= freed
    assert freed - going <= careful
