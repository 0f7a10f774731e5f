"""Files that hold what is left of others, ActiveMQ's and our own: when and where they count."""

from pathlib import Path

import pytest
from handmade_journal import Journal
from store_kit import Kit

from lockkeeper.journal.records import (
    Commit,
    RewrittenDataFile,
    Trace,
)
from lockkeeper.message.destination import queue
from lockkeeper.message.ids import XATransactionId
from lockkeeper.store.kahadb.audit import differences

A, B = queue("A"), queue("B")
GLOBAL = XATransactionId(86, b"global", b"branch")


@pytest.fixture
def journal(tmp_path: Path, kit: Kit) -> Journal:
    return Journal(tmp_path / "data", kit)


def test_acknowledgements_that_activemq_has_moved_count_where_they_were(
    journal: Journal, kit: Kit
) -> None:
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


def test_a_torn_tail_before_a_rewritten_file_is_an_interrupted_write(journal: Journal) -> None:
    journal.write(journal.add(1), file_id=1)
    (batch,) = journal.write(journal.add(2), file_id=4)
    torn = batch[:-20]
    with (journal.directory / "db-4.log").open("ab") as file:
        file.seek(len(batch))
        file.truncate()
        file.write(torn)
    journal.write(RewrittenDataFile(2), journal.remove(1), file_id=5)
    assert journal.replay() == {"A": [2]}


def test_a_file_that_repeats_another_goes_before_it(journal: Journal, kit: Kit) -> None:
    journal.write(journal.add(1), journal.add(2), file_id=1)
    journal.write(journal.remove(1), file_id=3)
    head = RewrittenDataFile(1)
    journal.write(head, journal.add(1), journal.add(2), file_id=2)
    recovered = journal.open()
    store = journal.store
    store.add(B, kit.reference(9, B), None)
    store.remove(A, next(iter(recovered.queues[A])))
    kit.until_durable(store)
    for minute in range(4):
        kit.maintain(store, minute * 60_000)
        kit.until_durable(store)
        assert differences(journal.directory, store._file_references) == []
    store.close()
    assert journal.replay() == {"B": [9]}
