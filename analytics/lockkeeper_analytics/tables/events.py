"""`events`: one row for each event line of the flight recorder; the pieces are parts of files."""

import json
from collections.abc import Iterable, Iterator

import pyarrow as pa

from lockkeeper.message.destination import parse_destination
from lockkeeper_analytics.reading.asked import ReadOptions, is_asked_for
from lockkeeper_analytics.reading.partitions import Part
from lockkeeper_analytics.reading.recorder import EVENT
from lockkeeper_analytics.reading.records import LOST
from lockkeeper_analytics.reading.schema import INT, LONG, TEXT, TIME
from lockkeeper_analytics.tables import records
from lockkeeper_analytics.tables.lines import Line, number, read_lines, text
from lockkeeper_analytics.tables.shape import Getter, Table, Type, fields


def _text(name: str, key: str, meaning: str) -> tuple[str, Type, Getter, str]:
    return name, TEXT, lambda line: text(line.told.get(key)), meaning


def _number(name: str, key: str, meaning: str) -> tuple[str, Type, Getter, str]:
    return name, LONG, lambda line: number(line.told.get(key)), meaning


def _details(line: Line) -> str:
    return json.dumps(line.told, separators=(",", ":"))


_FIELDS = fields(
    ("directory", TEXT, lambda line: line.directory, "the journal directory, as it was named"),
    ("at", TIME, lambda line: line.at, "when it happened"),
    _text("event", "event", "what happened: `start`, `takeover`, `consumerOpened`, …"),
    _text("broker_name", "broker", "name of the broker, as it says"),
    _text("replica", "replica", "which of its processes"),
    _number("epoch", "epoch", "number of its term; by earlier versions the ms when it began"),
    _text("cause", "cause", "why, in words"),
    _text("configuration", "hash", "changes with the configuration"),
    _text("connection_id", "connection", "the connection"),
    _text("client_id", "clientId", "its client id"),
    _text("user_name", "user", "its user"),
    _text("address", "address", "where it comes from"),
    _text("consumer_id", "consumer", "the consumer, as acknowledgements name it"),
    _text("producer_id", "producer", "the producer, as messages name it"),
    _text("destination", "destination", "such as `queue://ORDERS`"),
    _text("selector", "selector", "the consumer's; at most 256 characters"),
    _number("prefetch", "prefetch", "the consumer's window"),
    _text("subscription", "subscription", "name of a durable consumer's subscription"),
    _number("delivered", "delivered", "messages that the consumer was sent"),
    _number("held", "held", "messages in a slow consumer's window"),
    _number("left_out", "count", "events that were only counted"),
    _text("broker_id", "brokerId", "id of the broker in paths of messages, kept in its journal"),
    _text("bridge", "bridge", "name of a bridge's network connector"),
    _text("peer", "peer", "name of the broker at its other end"),
    _text("peer_id", "peerId", "… and that one's id"),
    _number("forwarded", "forwarded", "messages that the other broker has confirmed since then"),
    _number("received", "received", "new messages that it has brought"),
    _text("direction", "direction", "which way messages go over it: `out`, `in` or `both`"),
    ("line", TEXT, _details, "the whole line as JSON"),
    ("file_id", INT, lambda line: line.file_id, "number of the data file"),
    ("offset", LONG, lambda line: line.offset, "where the record begins there, in bytes"),
)


def read(part: Part, options: ReadOptions) -> Iterator[pa.RecordBatch]:
    """Yield the events in *part*."""
    yield from told_by(read_lines(part, EVENT, options), options)


def told_by(lines: Iterable[Line], options: ReadOptions) -> Iterator[pa.RecordBatch]:
    """Yield the events of *lines*; with `destination`, those that name one are chosen by it."""
    asked = (line for line in lines if _is_asked_for(line, options))
    yield from _FIELDS.batches(asked, options.columns)


def _is_asked_for(line: Line, options: ReadOptions) -> bool:
    named = text(line.told.get("destination"))
    if not named or not options.destinations:
        return True
    try:
        parts = parse_destination(named).parts()
    except ValueError:
        return False
    return any(is_asked_for(each, options.destinations) for each in parts)


TABLE = Table(
    "events",
    "what happened to brokers and their clients, by the flight recorder",
    _FIELDS.columns,
    tuple(_FIELDS.columns),
    records.plan_files,
    read,
    lost=lambda lost: {"event": LOST, "cause": f"removed before it was read: {lost}"},
    is_pinnable=True,
)
