"""Durable subscriptions to wildcards in KahaDB: one record for each topic, as in ActiveMQ."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from store_kit import Kit

from lockkeeper.journal.batch import EOF_RECORD, build_batch
from lockkeeper.journal.encode import encode_record
from lockkeeper.journal.files import list_data_files
from lockkeeper.journal.records import AddMessage, Record, RemoveDestination, RemoveMessage
from lockkeeper.journal.records import Subscription as SubscriptionRecord
from lockkeeper.journal.recount import read_data_file
from lockkeeper.message.destination import Destination, topic
from lockkeeper.message.openwire import SubscriptionInfo, encode
from lockkeeper.store.base import Reference, Subscription
from lockkeeper.store.kahadb import KahaDBStore
from lockkeeper.store.kahadb.audit import differences

KEY = "client:s"
HOME, WORLD, ALL = topic("NEWS.HOME"), topic("NEWS.WORLD"), topic("NEWS.>")
PARTS = {place: Subscription("client", "s", place, None, False, ALL) for place in (HOME, WORLD)}
FILE_BYTES = 1 << 16


def framed(body: bytes) -> bytes:
    return len(body).to_bytes(4, "big") + body


def subscribed(destination: Destination, wanted: Destination = ALL) -> SubscriptionRecord:
    info = SubscriptionInfo(
        client_id="client",
        subscription_name="s",
        destination=destination,
        subscribed_destination=wanted,
    )
    return SubscriptionRecord(destination, KEY, False, framed(encode(info, 11)))


@pytest.fixture
def lines(kit: Kit) -> list[Record]:
    """What ActiveMQ writes when a message comes to each of two topics of a wildcard."""
    found: list[Record] = []
    for number, destination in enumerate((HOME, WORLD)):
        body = kit.reference(number, destination).loaded.body
        message = AddMessage(destination, f"ID:producer-1:1:1:1:{number}", framed(body))
        found += [subscribed(destination), message]
    return found


class Journal:
    """A directory with records, opened."""

    def __init__(self, directory: Path, kit: Kit, records: Sequence[Record] = ()) -> None:
        self.directory, self.kit = directory, kit
        directory.mkdir()
        if records:
            batches = [build_batch(encode_record(one))[: -len(EOF_RECORD)] for one in records]
            (directory / "db-1.log").write_bytes(b"".join(batches) + EOF_RECORD)
        self.open()

    def open(self) -> None:
        self.store = KahaDBStore(
            self.directory,
            clock=self.kit.clock,
            file_bytes_max=FILE_BYTES,
            cleanup_interval_ms=0,
        )
        self.recovered = self.store.open()

    def again(self) -> None:
        self.kit.until_durable(self.store)
        assert differences(self.directory, self.store._file_references) == []
        self.store.close()
        self.open()
        assert differences(self.directory, self.store._file_references) == []

    def waiting(self) -> dict[Destination, list[int]]:
        """Return the numbers of what waits in each topic."""
        return {
            entry.subscription.destination: self.kit.numbers(self.store, entry.pending)
            for entry in self.recovered.subscriptions
        }

    def pending(self, place: Destination) -> list[Reference]:
        entries = self.recovered.subscriptions
        (found,) = [one.pending for one in entries if one.subscription.destination == place]
        return found


def test_a_subscription_of_activemq_to_a_wildcard_is_taken_over_whole(
    lines: list[Record], tmp_path: Path, kit: Kit
) -> None:
    journal = Journal(tmp_path / "data", kit, lines)
    assert [entry.subscription for entry in journal.recovered.subscriptions] == [*PARTS.values()]
    assert journal.waiting() == {HOME: [0], WORLD: [1]}
    journal.again()
    assert journal.waiting() == {HOME: [0], WORLD: [1]}


def test_one_that_activemq_ended_in_every_topic_is_gone(
    lines: list[Record], tmp_path: Path, kit: Kit
) -> None:
    ended = [SubscriptionRecord(each, KEY, False, None) for each in (HOME, WORLD, topic("OTHER"))]
    assert Journal(tmp_path / "data", kit, [*lines, *ended]).recovered.subscriptions == []


def test_topics_end_and_begin_anew_one_by_one(
    lines: list[Record], tmp_path: Path, kit: Kit
) -> None:
    changes: list[Record] = [
        SubscriptionRecord(HOME, KEY, False, None),
        subscribed(WORLD),
        RemoveDestination(topic("OTHER")),
    ]
    journal = Journal(tmp_path / "data", kit, [*lines, *changes])
    assert journal.waiting() == {WORLD: []}
    journal.again()
    assert journal.waiting() == {WORLD: []}


def test_an_acknowledgement_concerns_one_topic(
    lines: list[Record], tmp_path: Path, kit: Kit
) -> None:
    done = RemoveMessage(WORLD, "ID:producer-1:1:1:1:1", subscription_key=KEY)
    journal = Journal(tmp_path / "data", kit, [*lines, done])
    assert journal.waiting() == {HOME: [0], WORLD: []}
    (first,) = journal.pending(HOME)
    journal.store.remove(HOME, first, None, PARTS[HOME])
    journal.again()
    assert journal.waiting() == {HOME: [], WORLD: []}


def test_what_is_written_is_what_activemq_writes(
    lines: list[Record], tmp_path: Path, kit: Kit
) -> None:
    journal = Journal(tmp_path / "data", kit)
    for part in PARTS.values():
        journal.store.subscribe(part, None)
    journal.again()
    (file,) = list_data_files(journal.directory)
    written = [one for one in read_data_file(file) if isinstance(one, SubscriptionRecord)]
    assert written == [one for one in lines if isinstance(one, SubscriptionRecord)]


def test_removing_one_topic_leaves_the_others(
    lines: list[Record], tmp_path: Path, kit: Kit
) -> None:
    journal = Journal(tmp_path / "data", kit, lines)
    (first,) = journal.pending(HOME)
    journal.store.release(first)
    journal.store.remove_destination(HOME, None)
    journal.again()
    assert journal.waiting() == {WORLD: [1]}


def test_the_record_of_each_topic_moves_on_by_itself(
    lines: list[Record], tmp_path: Path, kit: Kit
) -> None:
    journal = Journal(tmp_path / "data", kit, lines)
    (first,) = journal.pending(HOME)
    journal.store.remove(HOME, first, None, PARTS[HOME])
    other = topic("OTHER")
    filler = Subscription("filler", "f", other, None, False)
    journal.store.subscribe(filler, None)
    for number in range(100, 140):
        one = kit.reference(number, other, 5000)
        journal.store.add(other, one, None)
        kit.until_durable(journal.store)
        journal.store.remove(other, one, None, filler)
        kit.until_durable(journal.store)
        kit.maintain(journal.store, number * 60_000)
    # What waits in WORLD keeps the first file: both records of it stay there.
    assert (journal.directory / "db-1.log").exists()
    journal.again()
    (second,) = journal.pending(WORLD)
    journal.store.remove(WORLD, second, None, PARTS[WORLD])
    for number in range(140, 180):
        one = kit.reference(number, other, 5000)
        journal.store.add(other, one, None)
        kit.until_durable(journal.store)
        journal.store.remove(other, one, None, filler)
        kit.until_durable(journal.store)
        kit.maintain(journal.store, number * 60_000)
    assert not (journal.directory / "db-1.log").exists()
    journal.again()
    assert {entry.subscription for entry in journal.recovered.subscriptions} == {
        *PARTS.values(),
        filler,
    }
