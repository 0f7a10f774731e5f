"""What is told of a directory does not depend on the others that are read with it."""

import pyarrow as pa
import pytest
from journal_maker import JournalMaker

from lockkeeper_analytics.reports import REPORTS
from lockkeeper_analytics.sql import query
from lockkeeper_analytics.texts import REPORT

MINUTE = 60_000


def written(folder, minutes):
    """Write a steady journal: thirty messages come each minute, and most are acknowledged."""
    maker, number = JournalMaker(folder), 0
    for minute in range(minutes):
        for step in range(30):
            number += 1
            maker.add(number, minute * MINUTE + step * 2000)
            if step % 3:
                maker.remove(number)
        maker.clock(minute * MINUTE + 58_000).flush()
    return folder


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    """Two directories of which one ends much earlier, in cells of the same length."""
    folder = tmp_path_factory.mktemp("apart")
    return written(folder / "short", 21), written(folder / "long", 24)


def rows_of_reports(*directories):
    lists = [f"(SELECT list(told) FROM {name}{REPORT} told) AS {name}" for name in REPORTS]
    options = {"path": ",".join(map(str, directories))}
    (row,) = pa.Table.from_batches(query.run(f"SELECT {', '.join(lists)}", options)).to_pylist()
    return row


def test_every_report_of_a_directory_is_the_same_beside_another(places):
    short, long = places
    together = rows_of_reports(short, long)
    for directory in places:
        alone = rows_of_reports(directory)
        for name in REPORTS:
            told = [row for row in together[name] or () if row["directory"] == str(directory)]
            assert told == (alone[name] or []), name
