"""Every table is what a replay of the records in order comes to, over random journals."""

from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from journal_maker import JournalMaker, message_id, rows_of, transaction
from random_journal import RandomJournal, RandomStory
from sequential_tables import SEQUENTIAL, sequential_rows

from lockkeeper.message.destination import queue
from lockkeeper_analytics.facts.shuffled import read_table
from lockkeeper_analytics.narrowing import TABLES as DERIVED

GOLDENS = ("amq-5.17.2-crash", "amq-5.17.2-clean", "amq-6.1.7-crash", "amq-6.1.7-clean")


def in_order(rows):
    """Return *rows* without the broker's name in an order of their own."""
    told = [{name: row[name] for name in row if name != "broker"} for row in rows]
    return sorted((sorted(row.items()) for row in told), key=repr)


def written(folder, chance, kind, ids, loses_first):
    """Write a random journal, perhaps without the file that it began with."""
    directory = kind(Path(folder) / "journal", chance, ids).write()
    first = directory / "db-1.log"
    if loses_first and len(list(directory.glob("db-*.log"))) > 2 and first.exists():
        first.unlink()
    return directory


@pytest.mark.timeout(900)
@pytest.mark.parametrize("part", range(4))
@settings(max_examples=8, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    kind=st.sampled_from([RandomJournal, RandomStory]),
    ids=st.sampled_from([2, 5, 12]),
    loses_first=st.booleans(),
)
def test_tables_are_what_a_replay_in_order_tells(part, seed, kind, ids, loses_first):
    with TemporaryDirectory() as folder:
        directory = written(folder, Random(seed), kind, ids, loses_first)
        for table in SEQUENTIAL:
            found = in_order(rows_of(directory, table=table))
            assert found == in_order(sequential_rows(directory, table)), table


@pytest.mark.parametrize("name", GOLDENS)
@pytest.mark.parametrize("table", SEQUENTIAL)
def test_tables_of_activemq_are_what_a_replay_in_order_tells(golden, name, table):
    directory = golden / name
    found = in_order(rows_of(directory, table=table))
    assert found == in_order(sequential_rows(directory, table))


def test_random_journals_have_what_is_rare(tmp_path):
    outcomes, states, copies, deaths = set(), set(), 0, 0
    for seed in range(12):
        directory = written(tmp_path / str(seed), Random(seed), RandomStory, 3, False)
        messages = sequential_rows(directory, "messages")
        outcomes |= {row["outcome"] for row in messages}
        copies += sum(row["copy_of"] is not None for row in messages)
        deaths += sum(row["dead_letter_destination"] is not None for row in messages)
        states |= {row["state"] for row in sequential_rows(directory, "subscriptions")}
    assert outcomes == {
        "acknowledged",
        "dead_lettered",
        "dropped",
        "duplicate",
        "expired",
        "in_doubt",
        "open",
        "pending",
        "rolled_back",
        "unmatched",
        "unwanted",
    }
    assert states == {"live", "deleted", "replaced", "dropped"}
    assert copies > 10
    assert deaths > 10


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("table", SEQUENTIAL)
def test_spark_tells_the_same_rows(spark, golden, tmp_path, table):
    directories = [golden / GOLDENS[0]]
    for number, kind in enumerate((RandomJournal, RandomStory)):
        directories.append(written(tmp_path / str(number), Random(number), kind, 5, False))
    found = read_table(spark, table, list(map(str, directories))).toArrow().to_pylist()
    expected = [row for each in directories for row in sequential_rows(each, table)]
    assert in_order(found) == in_order(expected)


@pytest.mark.parametrize("table", DERIVED)
def test_narrowing_chooses_rows_and_changes_none(tmp_path, table):
    maker = JournalMaker(tmp_path / "journal")
    maker.add(1, 0).add(2, 1, queue("A.B"), tx=transaction(1)).add(3, 2, queue("A.C")).clock(2)
    maker.flush().remove(1).clock(1000).flush().commit(transaction(1)).clock(3000).flush()
    whole = in_order(rows_of(maker.directory, table=table))
    if table == "files":
        return
    some = in_order(rows_of(maker.directory, table=table, destination="A.B"))
    named = [row for row in whole if "A.B" in str(dict(row).get("destination") or row)]
    assert some == named
    assert message_id(1) not in str(some)
