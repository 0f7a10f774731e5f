"""Where journals may be: folders, archives, copies behind URLs, several at once with names."""

import io
import uuid

import fsspec
import pytest
from journal_maker import JournalMaker, message_id, rows_of
from streams_journal import write_streams

from lockkeeper_analytics.errors import NoJournalError, OptionError
from lockkeeper_analytics.reading.storage import beside, name_of, open_file, sibling_in_archive
from lockkeeper_analytics.tables import TABLES
from lockkeeper_analytics.tables.options import parse_options

OF_STREAMS = ("stream_messages", "stream_offsets", "declared_streams")
ABSENT = ("subscriptions", "transactions", *OF_STREAMS)
"""Tables without a row of the journal here."""


@pytest.fixture
def maker(tmp_path):
    """Three files, the first in the archive."""
    maker = JournalMaker(tmp_path / "journal")
    maker.add(1, 1).clock(2).flush().roll().add(2, 3).flush().remove(1).clock(4).flush()
    maker.roll().statistics(5, depth=1).line("event", 6, event="stop").flush()
    archive = maker.directory / "data-archive"
    archive.mkdir()
    (maker.directory / "db-1.log").rename(archive / "db-1.log")
    return maker


@pytest.fixture
def in_memory(maker):
    """Return the URL of a copy in fsspec's memory, as an object store would have it."""
    return copied(maker.directory)


def copied(directory):
    """Return the URL of a copy of *directory* in fsspec's memory."""
    url = f"memory://{uuid.uuid4()}/journal"
    filesystem, root = fsspec.core.url_to_fs(url)
    for path in directory.rglob("*.log"):
        filesystem.pipe(f"{root}/{path.relative_to(directory)}", path.read_bytes())
    return url


def told(place, table):
    """Return the rows of a table but for where they were read."""
    rows = rows_of(place, table=table)
    return [{name: row[name] for name in row if name != "directory"} for row in rows]


@pytest.mark.parametrize("table", TABLES)
def test_a_copy_behind_a_url_has_the_same_rows(maker, in_memory, table):
    expected = told(maker.directory, table)
    assert bool(expected) is (table not in ABSENT)
    assert told(in_memory, table) == expected
    assert told(f"file://{maker.directory}", table) == expected


def test_tables_of_streams_are_read_behind_urls(tmp_path):
    directory = write_streams(tmp_path / "journal").directory
    url = copied(directory)
    for table in OF_STREAMS:
        expected = told(directory, table)
        assert expected
        assert told(url, table) == expected


@pytest.mark.parametrize("name", ["amq-5.17.2-crash", "amq-6.1.7-clean"])
def test_directories_of_activemq_are_read_behind_urls(golden, name):
    rows = told(f"file://{golden / name}", "messages")
    assert rows == told(golden / name, "messages")
    assert {row["broker"] for row in rows} == {name}


def test_several_journals_are_told_apart(maker, in_memory, golden):
    path = f"north={in_memory},{maker.directory},south={golden / 'amq-5.17.2-crash'}"
    for table in TABLES:
        rows = rows_of(path, table=table, columns="broker,directory")
        wanted = {"north": in_memory, "journal": str(maker.directory)}
        found = {row["broker"]: row["directory"] for row in rows}
        assert found.pop("south", "").endswith("crash") or table in (
            "statistics",
            "events",
            *OF_STREAMS,
        )
        assert found == wanted or table in ABSENT


def test_the_name_alone_may_be_asked_for(maker):
    assert rows_of(f"x={maker.directory}", table="events", columns="broker") == [{"broker": "x"}]


def test_a_name_of_two_directories_is_refused(tmp_path):
    with pytest.raises(OptionError, match="'a' names two directories"):
        parse_options({"path": "a=one,a=two"})
    places = parse_options({"path": "a=one,two,./b=three,s3://bucket/x=1"})
    assert places.directories == ("one", "two", "./b=three", "s3://bucket/x=1")
    assert [places.broker_of(each) for each in places.directories] == ["a", "two", "b=three", "x=1"]


@pytest.mark.parametrize(
    ("place", "complaint"),
    [
        ("memory://nowhere-at-all/x", "no such directory"),
        ("nosuchscheme://x/y", "nosuchscheme"),
        ("file:///nowhere/at/all", "no such directory"),
    ],
)
def test_a_url_without_a_journal_is_named(place, complaint):
    with pytest.raises(NoJournalError, match=f"{place}: .*{complaint}"):
        rows_of(place)


def test_a_file_is_no_directory_behind_a_url_either(maker):
    with pytest.raises(NoJournalError, match="not a directory; name the one"):
        rows_of(f"file://{maker.path}")


def test_remote_files_are_read_ahead(in_memory):
    with open_file(f"{in_memory}/db-2.log") as file:
        assert isinstance(file, io.BufferedReader)
        assert file.read(4) == b"\0\0\0\x1c"
        file.seek(-2, 2)
        assert len(file.read()) == 2


def test_a_query_of_a_url_stays_behind_the_file():
    url = "s3://bucket/journal?endpoint_override=localhost:9000/x"
    inner = beside(url, "db-1.log")
    assert inner == "s3://bucket/journal/db-1.log?endpoint_override=localhost:9000/x"
    assert name_of(inner) == "db-1.log"
    assert sibling_in_archive(inner) == inner.replace("db-1", "data-archive/db-1")
    assert sibling_in_archive("db-1.log") == "./data-archive/db-1.log"


def test_messages_of_a_copy_are_those_of_the_original(in_memory):
    rows = rows_of(in_memory, table="messages", columns="message_id,outcome")
    assert [tuple(row.values()) for row in rows] == [
        (message_id(1), "acknowledged"),
        (message_id(2), "pending"),
    ]
