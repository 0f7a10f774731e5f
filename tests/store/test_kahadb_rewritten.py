"""Files that hold what is left of others, ActiveMQ's and our own: when and where they count."""

import pytest

from lockkeeper.journal.batch import EOF_RECORD, build_batch
from lockkeeper.journal.encode import encode_record
from lockkeeper.journal.records import (
    AddMessage,
    Commit,
    RemoveMessage,
    RewrittenDataFile,
    Trace,
)
from lockkeeper.message.destination import queue
from lockkeeper.message.ids import XATransactionId
from lockkeeper.store.kahadb import KahaDBStore
from lockkeeper.store.kahadb.audit import differences

A, B = queue("A"), queue("B")
GLOBAL = XATransactionId(86, b"global", b"branch")
KEY = "ID:producer-1:1:1:1:"


class Journal:
    """Writes data files by hand."""

    def __init__(self, directory, kit):
        self.directory = directory
        self.kit = kit
        directory.mkdir()
        self.store = KahaDBStore(directory, clock=kit.clock, file_bytes_max=1 << 16)

    def add(self, number):
        body = self.kit.reference(number, A).message.body
        return AddMessage(A, f"{KEY}{number}", len(body).to_bytes(4, "big") + body)

    def remove(self, number, transaction=None):
        return RemoveMessage(A, f"{KEY}{number}", None, None, transaction)

    def write(self, *records, file_id=1):
        batches = [build_batch(encode_record(one))[: -len(EOF_RECORD)] for one in records]
        (self.directory / f"db-{file_id}.log").write_bytes(b"".join(batches) + EOF_RECORD)
        return batches

    def open(self):
        return self.store.open()

    def replay(self):
        recovered = self.open()
        queues = {
            place.name: self.kit.numbers(self.store, references)
            for place, references in recovered.queues.items()
        }
        self.store.close()
        return queues


@pytest.fixture
def journal(tmp_path, kit):
    return Journal(tmp_path / "data", kit)


def test_acknowledgements_that_activemq_has_moved_count_where_they_were(journal, kit):
    journal.write(journal.add(1), file_id=1)
    journal.write(Trace("the removal and the promise were here, and have been moved"), file_id=2)
    journal.write(Commit(GLOBAL), file_id=3)
    journal.write(journal.add(2), file_id=4)
    journal.write(RewrittenDataFile(2), journal.remove(1, transaction=GLOBAL), file_id=5)
    (journal.directory / "db-2.log").unlink()
    assert journal.replay() == {"A": [2]}
    journal.open()
    assert differences(journal.directory, journal.store._file_references) == []
    journal.store.close()


def test_a_torn_tail_before_a_rewritten_file_is_an_interrupted_write(journal):
    journal.write(journal.add(1), file_id=1)
    (batch,) = journal.write(journal.add(2), file_id=4)
    torn = batch[:-20]
    with (journal.directory / "db-4.log").open("ab") as file:
        file.seek(len(batch))
        file.truncate()
        file.write(torn)
    journal.write(RewrittenDataFile(2), journal.remove(1), file_id=5)
    assert journal.replay() == {"A": [2]}


def test_a_file_that_repeats_another_goes_before_it(journal, kit):
    journal.write(journal.add(1), journal.add(2), file_id=1)
    journal.write(journal.remove(1), file_id=3)
    head = RewrittenDataFile(1)
    journal.write(head, journal.add(1), journal.add(2), file_id=2)
    recovered = journal.open()
    store = journal.store
    store.add(B, kit.reference(9, B), None)
    store.remove(A, recovered.queues[A][0])
    kit.until_durable(store)
    for minute in range(4):
        kit.maintain(store, minute * 60_000)
        kit.until_durable(store)
        assert differences(journal.directory, store._file_references) == []
    store.close()
    assert journal.replay() == {"B": [9]}
