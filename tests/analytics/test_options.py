"""Options are checked by name and value; what is wrong names what would be right."""

from datetime import UTC, datetime

import pytest
from journal_maker import JournalMaker, rows_of
from test_sql import printed

from lockkeeper.message.destination import Kind
from lockkeeper_analytics.errors import OptionError
from lockkeeper_analytics.reading.moments import moment
from lockkeeper_analytics.reading.schema import DEFAULT_COLUMNS
from lockkeeper_analytics.tables.options import parse_options


def parsed(**options):
    return parse_options({"path": "a", **options})


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"colums": "kind"}, "unknown option 'colums'; did you mean 'columns'"),
        ({"columns": "kind,destnation"}, "unknown column 'destnation' of records; did you mean"),
        ({"columns": "zzzz"}, "unknown column 'zzzz' of records .known: directory, "),
        ({"since": "yesterday"}, "option since: 'yesterday' is neither an ISO 8601 time"),
        ({"until": "now"}, "option until: 'now' is neither an ISO 8601 time"),
        ({"table": "message"}, "unknown table 'message'; did you mean 'messages'"),
        ({"table": "acks", "columns": "kind"}, "unknown column 'kind' of acks"),
        ({"table": "acks", "body": "true"}, "option body: table acks has none"),
        ({"table": "files", "destination": "A"}, "option destination: rows of files are of all"),
        ({"body": "yes"}, "option body: 'yes' is neither true nor false"),
        ({"bodyBytesMax": "-1"}, "option bodyBytesMax: '-1' is not a number of bytes"),
        ({"corrupt": "ignore"}, "option corrupt: 'ignore' is not one of fail, skip"),
        ({"destination": "queue://"}, "option destination: a destination needs a name"),
        ({"since": "\u00b2"}, "option since: '\u00b2' is neither an ISO 8601 time"),
        ({"bodyBytesMax": "\u00b2"}, "option bodyBytesMax: '\u00b2' is not a number of bytes"),
        ({"since": "9999999999999999"}, "option since: '9999999999999999' is after the year 9999"),
        ({"until": "9" * 5000}, "option until: '9+' is after the year 9999: it takes an ISO 8601"),
        ({"bodyBytesMax": "9" * 5000}, "option bodyBytesMax: '9+' is more than 90071992547409"),
        ({"path": " , "}, "option path: name one or more journal directories"),
    ],
)
def test_what_is_wrong_is_named(options, complaint):
    with pytest.raises(OptionError, match=complaint):
        parsed(**options)


def test_directories_come_from_one_or_several_paths():
    assert parsed().directories == ("a",)
    assert parsed(path="a, b,a").directories == ("a", "b")
    assert parse_options({"paths": '["b", "c"]'}).directories == ("b", "c")


def test_names_of_options_may_be_in_any_case():
    assert parsed(BODYBYTESMAX="5").body_bytes_max == 5


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("1795000000000", 1_795_000_000_000),
        ("1970-01-01T00:00:01Z", 1000),
        ("1970-01-01T00:00:01.5", 1500),
        ("1970-01-01T02:00:00+02:00", 0),
        ("1970-01-02", 86_400_000),
    ],
)
def test_since_is_milliseconds_or_an_iso_time(text, milliseconds):
    assert parsed(since=text).since == milliseconds


def test_times_before_all_records_are_bounds_like_others(tmp_path):
    maker = JournalMaker(tmp_path).add(1, 0).flush()
    for text in ("0001-01-01", "1969-12-31", "1970-01-01", "0001-01-01T00:00+14:00"):
        assert (parsed(since=text).since, parsed(until=text).until) == (0, 1)
        for columns in ("kind", "kind,written_after"):
            assert len(rows_of(maker.directory, columns=columns, since=text)) == 1
            assert rows_of(maker.directory, columns=columns, until=text) == []
    assert moment("9999999d", datetime.now(UTC)) == moment("9" * 400 + "d", datetime.now(UTC))
    assert parsed(since=moment("9999999d", datetime.now(UTC))).since == 0
    last = parsed(since="9999-12-31T23:59:59.999Z").since
    assert rows_of(maker.directory, table="messages", until=str(last))
    assert rows_of(maker.directory, table="messages", since=str(last))


def test_a_directory_that_is_there_comes_before_what_its_name_may_mean(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("a,b", "data=1", "1"):
        JournalMaker(tmp_path / name).add(1, 0).flush()
    assert parsed(path="a,b").directories == ("a,b",)
    assert parsed(path="a,c").directories == ("a", "c")
    named = parsed(path="north=a,b")
    assert (named.directories, named.names) == (("a,b",), ("north",))
    assert parsed(path="data=1").directories == ("data=1",)
    assert parsed(path="dota=1").names == ("dota",)
    text = "select distinct directory from messages order by 1"
    lines = printed(text, "a,b", "data=1", "-f", "csv").splitlines()
    assert lines == ["directory", '"a,b"', "data=1"]


def test_no_directory_is_read_twice(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    JournalMaker(tmp_path / "a").add(1, 0).flush()
    (tmp_path / "link").symlink_to("a")
    assert parsed(path="a,a").directories == ("a",)
    for other in ("a/", "./a", "link", "north=link", str(tmp_path / "a")):
        with pytest.raises(OptionError, match=r"option path: .+ is a, and would be read twice$"):
            parsed(path=f"a,{other}")
    with pytest.raises(OptionError, match=r"a has two names, 'north' and 'south'$"):
        parsed(path="north=a,south=a")
    assert parsed(path="a,north=a").names == ("north",)


def test_bodies_come_on_demand():
    assert parsed().columns == DEFAULT_COLUMNS
    assert parsed(columns="kind, kind", body="TRUE").columns == ("kind", "body", "content")


def test_a_destination_is_of_any_kind_unless_it_says_which():
    any_kind, topic = parsed(destination="A.>,topic://A.*").destinations
    assert (any_kind.kind, any_kind.path) == (None, ("A", ">"))
    assert (topic.kind, topic.path) == (Kind.TOPIC, ("A", "*"))
