"""Options are checked by name and value; what is wrong names what would be right."""

import pytest

from lockkeeper.message.destination import Kind
from lockkeeper_analytics.errors import OptionError
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


def test_bodies_come_on_demand():
    assert parsed().columns == DEFAULT_COLUMNS
    assert parsed(columns="kind, kind", body="TRUE").columns == ("kind", "body", "content")


def test_a_destination_is_of_any_kind_unless_it_says_which():
    any_kind, topic = parsed(destination="A.>,topic://A.*").destinations
    assert (any_kind.kind, any_kind.path) == (None, ("A", ">"))
    assert (topic.kind, topic.path) == (Kind.TOPIC, ("A", "*"))
