"""Over random journals, histories say what a broker's own recovery finds in them."""

import random

import pytest
from journal_maker import JournalMaker, rows_of, transaction
from test_histories import framed

from lockkeeper.journal.decode import decode_record
from lockkeeper.journal.records import Prepare, RemoveDestination, Subscription, UpdateMessage
from lockkeeper.message.destination import queue, topic
from lockkeeper.message.ids import XATransactionId
from lockkeeper.message.openwire import SubscriptionInfo
from lockkeeper.store.base import Add, Remove
from lockkeeper.store.kahadb.cleanup import collectable
from lockkeeper.store.kahadb.file_references import OFFSET_BITS
from lockkeeper.store.kahadb.recovery import replay_directory

PLACES = (queue("A"), queue("B"), topic("T"), topic("U"))
NAMES = ("one", "two")
LOCAL = (transaction(1), transaction(2))
XA = (XATransactionId(1, b"g", b"1"), XATransactionId(1, b"g", b"2"))
RECORDS = 120
IDS = 12


class RandomJournal:
    """Writes records of every kind, sensible and not."""

    def __init__(self, directory, seed, removes_destinations):
        self.maker = JournalMaker(directory)
        self.other = JournalMaker(directory.parent / "other")
        self.chance = random.Random(seed)
        self.kinds = ["add"] * 10 + ["remove"] * 8 + ["subscribe"] * 2 + ["outcome"] * 3
        self.kinds += ["unsubscribe", "prepare", "update", "flush", "roll"]
        self.kinds += ["drop"] if removes_destinations else []

    def write(self):
        for at in range(RECORDS):
            getattr(self, self.chance.choice(self.kinds))(at)
        for identifier in LOCAL:
            self.maker.rollback(identifier)
        self.maker.flush()
        return self.maker.directory

    def add(self, at):
        number, place = self.chance.randrange(IDS), self.chance.choice(PLACES)
        self.maker.add(number, at, place, tx=self._transaction())

    def remove(self, at):
        place = self.chance.choice(PLACES)
        key = f"ann:{self.chance.choice(NAMES)}" if place.is_topic else None
        self.maker.remove(self.chance.randrange(IDS), place, self._transaction(), key)

    def update(self, at):
        self.other.waiting.clear()
        self.other.add(self.chance.randrange(IDS), at, self.chance.choice(PLACES))
        self.maker.record(UpdateMessage(decode_record(self.other.waiting[0])))

    def subscribe(self, at):
        place, name = self.chance.choice(PLACES[2:]), self.chance.choice(NAMES)
        info = SubscriptionInfo(client_id="ann", subscription_name=name, destination=place)
        is_retroactive = self.chance.random() < 0.3
        self.maker.record(Subscription(place, f"ann:{name}", is_retroactive, framed(info)))

    def unsubscribe(self, at):
        place, name = self.chance.choice(PLACES[2:]), self.chance.choice(NAMES)
        self.maker.record(Subscription(place, f"ann:{name}"))

    def outcome(self, at):
        identifier = self.chance.choice(LOCAL + XA)
        (self.maker.commit if self.chance.random() < 0.7 else self.maker.rollback)(identifier)

    def prepare(self, at):
        self.maker.record(Prepare(self.chance.choice(XA)))

    def drop(self, at):
        self.maker.record(RemoveDestination(self.chance.choice(PLACES)))

    def flush(self, at):
        if self.maker.waiting:
            self.maker.flush()

    def roll(self, at):
        self.flush(at)
        if self.maker.path.exists():
            self.maker.roll()

    def _transaction(self):
        return self.chance.choice(LOCAL + XA) if self.chance.random() < 0.3 else None


def place_of(reference):
    return reference.location >> OFFSET_BITS, reference.location & (1 << OFFSET_BITS) - 1


@pytest.fixture(params=range(60))
def directory(request, tmp_path):
    return RandomJournal(tmp_path / "journal", request.param, request.param % 3 == 0).write()


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
