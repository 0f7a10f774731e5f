"""One builder for each column: the records of a chunk in, an Arrow array out."""

import json
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lockkeeper.journal.decode import decode_record
from lockkeeper.journal.records import Subscription
from lockkeeper.journal.walk import QuickRecord
from lockkeeper.message.bodies import Body, MessageType, decode_body
from lockkeeper.message.destination import SCHEMES, Destination
from lockkeeper.message.errors import MalformedMessageError
from lockkeeper.message.openwire import SubscriptionInfo
from lockkeeper.message.primitives import Value
from lockkeeper_analytics.reading.arrays import array_of, repeated, texts_of, times_of
from lockkeeper_analytics.reading.frames import (
    cause_in,
    decode_info,
    properties_in,
    retry_in,
    stored_time,
)
from lockkeeper_analytics.reading.recorder import PREFIX
from lockkeeper_analytics.reading.records import SUBSCRIPTION, TRACE, is_message, kind_of
from lockkeeper_analytics.reading.rowset import Rows
from lockkeeper_analytics.reading.schema import COLUMNS
from lockkeeper_analytics.reading.stream_states import is_state, state_in

Builder = Callable[[Rows], pa.Array]

SCHEME_OF = {kind: scheme for scheme, kind in SCHEMES.items()}
MESSAGE_TYPES = {kind.value: kind.name.lower() for kind in MessageType}


def _array(name: str, values: list[Any]) -> pa.Array:
    return array_of(values, COLUMNS[name].arrow)


def _times(values: Iterable[int | None]) -> pa.Array:
    return times_of(np.fromiter((value or 0 for value in values), np.int64))


def _utf8(values: list[bytes | None]) -> pa.Array:
    return texts_of(pa.array(values, pa.binary()))


def _constant(name: str, value_of: Callable[[Rows], Any]) -> Builder:
    def build(rows: Rows) -> pa.Array:
        return repeated(value_of(rows), len(rows), COLUMNS[name].arrow)

    return build


def _offset(rows: Rows) -> pa.Array:
    offsets = pa.array([record[1] for record in rows.records], COLUMNS["offset"].arrow)
    return pc.add(offsets, rows.base)


def _destination(name: str, value_of: Callable[[Destination], str]) -> Builder:
    def build(rows: Rows) -> pa.Array:
        texts: dict[bytes, str | None] = {b"": None}
        for record in rows.records:
            if record[3] not in texts:
                texts[record[3]] = value_of(rows.destination(record[3]))
        return _array(name, [texts[record[3]] for record in rows.records])

    return build


def _transaction(rows: Rows) -> pa.Array:
    return _array("transaction", [rows.transaction(record[7]) for record in rows.records])


def _message_bytes(rows: Rows) -> pa.Array:
    sizes = [record[6] - 4 if is_message(record) else None for record in rows.records]
    return _array("message_bytes", sizes)


def _message_type(rows: Rows) -> pa.Array:
    data = rows.data
    types = [
        MESSAGE_TYPES.get(data[record[5] + 4]) if is_message(record) else None
        for record in rows.records
    ]
    return _array("message_type", types)


def _stored_at(rows: Rows) -> pa.Array:
    def time(start: int, end: int) -> int:
        return stored_time(rows.data, start, end)

    times = [rows.guarded(record, time) if is_message(record) else 0 for record in rows.records]
    return _times(times)


def _head(name: str, field: str | None = None) -> Builder:
    key = field or name

    def build(rows: Rows) -> pa.Array:
        return _array(name, [head and getattr(head, key) for head in rows.heads])

    return build


def _head_time(field: str) -> Builder:
    def build(rows: Rows) -> pa.Array:
        return _times(head and getattr(head, field) for head in rows.heads)

    return build


def _tail(name: str) -> Builder:
    def build(rows: Rows) -> pa.Array:
        return _array(name, [tail and getattr(tail, name) for tail in rows.tails])

    return build


def pairs_in(octets: bytes | None) -> list[tuple[str, str | None]]:
    """Return the properties in marshalled *octets*, values as text."""
    return [(name, text_of(value)) for name, value in properties_in(octets).items()]


def _properties(rows: Rows) -> pa.Array:
    return _array("properties", rows.each_tail(lambda tail: pairs_in(tail.properties)))


def _told(name: str, value_of: Callable[[bytes | None], str | None]) -> Builder:
    """Return the builder of what *value_of* tells of a message's properties."""
    return lambda rows: _array(name, rows.each_tail(lambda tail: value_of(tail.properties)))


def _ack(name: str) -> Builder:
    def build(rows: Rows) -> pa.Array:
        return _array(name, [ack and getattr(ack, name) for ack in rows.acks])

    return build


def _subscribed(name: str, value_of: Callable[[SubscriptionInfo], str | bool | None]) -> Builder:
    def build(rows: Rows) -> pa.Array:
        def value(record: QuickRecord) -> str | bool | None:
            if record[0] != SUBSCRIPTION or not record[5]:
                return None
            found = rows.guarded(record, lambda start, end: decode_info(rows.data[start:end]))
            return None if found is None else value_of(found)

        return _array(name, [value(record) for record in rows.records])

    return build


def _retroactive(rows: Rows) -> pa.Array:
    """Tell of records that create a subscription what they say beside its SubscriptionInfo."""

    def value(record: QuickRecord) -> bool | None:
        if record[0] != SUBSCRIPTION or not record[5]:
            return None
        said = rows.guarded(record, lambda _start, _end: decode_record(rows.data, record[1]))
        return isinstance(said, Subscription) and bool(said.retroactive) if said else None

    return _array("retroactive", [value(record) for record in rows.records])


def trace_text(data: bytes, record: QuickRecord, is_recorder: bool) -> bytes | None:
    """Return the text of a trace that is, or is not, the flight recorder's; None otherwise."""
    if record[0] != TRACE:
        return None
    start, end = record[5], record[5] + record[6]
    ours = data.startswith(PREFIX, start, end)
    return data[start + (len(PREFIX) if ours else 0) : end] if ours is is_recorder else None


def _trace(is_recorder: bool) -> Builder:
    def build(rows: Rows) -> pa.Array:
        return _utf8([trace_text(rows.data, record, is_recorder) for record in rows.records])

    return build


def _stream_state(rows: Rows) -> pa.Array:
    def value(record: QuickRecord) -> str | None:
        if not is_state(record, rows.destination):
            return None
        return rows.guarded(record, partial(state_in, rows.data))

    return _array("stream_state", [value(record) for record in rows.records])


def _body(name: str, wanted: Callable[[Body], Any]) -> Builder:
    def build(rows: Rows) -> pa.Array:
        def value(index: int) -> Any:
            record, tail = rows.records[index], rows.tails[index]
            if tail is None or tail.content is None:
                return None
            kind = rows.data[record[5] + 4]
            limit = rows.context.options.body_bytes_max
            if not tail.compressed and len(tail.content) > limit:
                return None
            try:
                return wanted(decode_body(kind, tail.content, tail.compressed, limit))
            except MalformedMessageError:
                return None

        return _array(name, [value(index) for index in range(len(rows.records))])

    return build


def text_of(value: Value) -> str | None:
    """Return a property's value as text: as JSON writes it, but a text as it is."""
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, default=_as_text)


def _as_text(value: object) -> str:
    return value.hex() if isinstance(value, bytes) else str(value)


def _body_text(body: Body) -> str | None:
    if isinstance(body, Mapping | list):
        return json.dumps(body, ensure_ascii=False, default=_as_text)
    return body if isinstance(body, str) else None


BUILDERS: dict[str, Builder] = {
    "directory": _constant("directory", lambda rows: rows.context.part.directory),
    "file": _constant("file", lambda rows: rows.context.name),
    "file_id": _constant("file_id", lambda rows: rows.context.part.file_id),
    "offset": _offset,
    "record_bytes": lambda rows: _array("record_bytes", [row[2] for row in rows.records]),
    "kind": lambda rows: _array("kind", [kind_of(row) for row in rows.records]),
    "destination_kind": _destination("destination_kind", lambda found: SCHEME_OF[found.kind]),
    "destination": _destination("destination", lambda found: found.name),
    "message_id": lambda rows: _utf8([row[4] or None for row in rows.records]),
    "subscription": lambda rows: _utf8([row[8] for row in rows.records]),
    "transaction": _transaction,
    "written_after": lambda rows: times_of(rows.bounds.after),
    "written_before": lambda rows: times_of(rows.bounds.before),
    "message_bytes": _message_bytes,
    "message_type": _message_type,
    "stored_at": _stored_at,
    "producer_id": _head("producer_id", "producer"),
    "persistent": _head("persistent"),
    "priority": _head("priority"),
    "sent_at": _head_time("timestamp"),
    "expires_at": _head_time("expiration"),
    "correlation_id": _head("correlation_id"),
    "group_id": _head("group_id"),
    "group_sequence": _head("group_sequence"),
    "reply_to": _head("reply_to"),
    "copy_of": _head("copy_of"),
    "original_destination": _head("original_destination"),
    "jms_type": _tail("jms_type"),
    "compressed": _tail("compressed"),
    "redeliveries": _tail("redeliveries"),
    "user_id": _tail("user_id"),
    "broker_path": _tail("broker_path"),
    "properties": _properties,
    "dead_letter_cause": _told("dead_letter_cause", cause_in),
    "retry_of": _told("retry_of", retry_in),
    "ack_type": _ack("ack_type"),
    "consumer_id": _ack("consumer_id"),
    "ack_cause": _ack("ack_cause"),
    "selector": _subscribed("selector", lambda info: info.selector),
    "no_local": _subscribed("no_local", lambda info: info.no_local),
    "retroactive": _retroactive,
    "trace": _trace(is_recorder=False),
    "recorder": _trace(is_recorder=True),
    "stream_state": _stream_state,
    "body": _body("body", _body_text),
    "content": _body("content", lambda body: body if isinstance(body, bytes) else None),
}
