"""Names of destinations with line breaks are names like others, to all that asks for them."""

from typing import Any

import pytest
from journal_maker import JournalMaker, rows_of, transaction

from lockkeeper.message.destination import queue
from lockkeeper_analytics.facts.shuffled import read_table

NAMES = ("line\nbreak", "A", "A\n", "A\nB.C", "A.x\u2028y", "A.x\r\ny.z", "\n", "B")
PATTERNS = (">", "*", "A", "A.>", "A.*", "A.*.z", "line\nbreak", "*.C", "queue://A\nB.>")


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    maker = JournalMaker(tmp_path_factory.mktemp("breaks") / "journal")
    for number, name in enumerate(NAMES):
        maker.add(number, number, queue(name), tx=transaction(number)).commit(transaction(number))
    maker.add(90, 90, queue("B"), tx=transaction(90)).add(91, 90, queue("A\n"), tx=transaction(90))
    return maker.commit(transaction(90)).flush().directory


def names(rows: list[dict[str, Any]]) -> list[str]:
    return sorted({row["destination"] for row in rows} - {None})


@pytest.mark.parametrize("pattern", PATTERNS)
def test_tables_that_are_told_find_what_records_find(directory, pattern):
    expected = names(rows_of(directory, columns="destination", destination=pattern))
    found = rows_of(directory, table="destinations", destination=pattern)
    assert names(found) == expected and len(expected) < len(NAMES) + (pattern == ">")
    rows = rows_of(directory, table="transactions", destination=pattern)
    urls = {f"queue://{name}" for name in expected}
    assert all(urls & set(row["destinations"]) for row in rows)
    assert urls <= {url for row in rows for url in row["destinations"]}


@pytest.mark.spark
@pytest.mark.parametrize(
    ("table", "column", "pattern"),
    [("destinations", "destination", "*"), ("transactions", "transaction", "A.>")],
)
def test_spark_finds_the_same(spark, directory, table, column, pattern):
    rows = rows_of(directory, table=table, destination=pattern)
    frame = read_table(spark, table, [str(directory)], columns=column, destination=pattern)
    found = [row[column] for row in frame.toArrow().to_pylist()]
    assert sorted(found) == sorted(row[column] for row in rows)
