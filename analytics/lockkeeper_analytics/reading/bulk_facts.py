"""Builders of the columns with facts that stand inside messages and acknowledgements, at once."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from lockkeeper.journal.walk import REMOVE
from lockkeeper_analytics.reading.arrays import array_of, text_in, times_of
from lockkeeper_analytics.reading.bulk import Bulk, slices_of
from lockkeeper_analytics.reading.columns import BUILDERS, pairs_in
from lockkeeper_analytics.reading.frames import (
    CAUSE_PROPERTY,
    RETRY_PROPERTY,
    Head,
    cause_in,
    retry_in,
)
from lockkeeper_analytics.reading.rowset import Rows
from lockkeeper_analytics.reading.schema import COLUMNS

Builder = Callable[[Rows, Bulk], pa.Array]
_PRODUCER_TEXT_AT = 5
"""Two flags, a type and a length stand before the connection id of a producer."""


def _nulls(name: str, count: int) -> pa.Array:
    return pa.nulls(count, COLUMNS[name].arrow)


def _figure(name: str, part: int, field: str, key: str = "", is_time: bool = False) -> Builder:
    """Return the builder of a number; *field* of a message's head (part 0) or tail (1)."""

    def build(rows: Rows, bulk: Bulk) -> pa.Array:
        frames = rows.frames_at_once
        values = np.zeros(len(bulk), np.int64)
        absent = np.ones(len(bulk), np.bool_)
        values[frames.index] = getattr(frames, key or field)
        absent[frames.index] = False
        for index, found in rows.odd_frames.items():
            absent[index] = found is None
            values[index] = getattr(found[part], field) if found else 0
        if is_time:
            return times_of(values, absent)
        if COLUMNS[name].arrow == pa.bool_():
            return pa.array(values != 0, mask=absent)
        return pa.array(values, COLUMNS[name].arrow, mask=absent)

    return build


def _rare(name: str, part: int, field: str) -> Builder:
    """Return the builder of what plain messages do not have."""

    def build(rows: Rows, bulk: Bulk) -> pa.Array:
        odd = {index: found[part] for index, found in rows.odd_frames.items() if found}
        if not odd:
            return _nulls(name, len(bulk))
        values = [None] * len(bulk)
        for index, each in odd.items():
            values[index] = getattr(each, field)
        return array_of(values, COLUMNS[name].arrow)

    return build


def _producer(rows: Rows, bulk: Bulk) -> pa.Array:
    frames = rows.frames_at_once
    places, sizes = bulk["offset"].copy(), np.zeros(len(bulk), np.int64)
    plain = frames.index[frames.is_plain]
    places[plain] = frames.producer_at[frames.is_plain]
    sizes[plain] = frames.producer_size[frames.is_plain]
    codes = slices_of(bulk.data, places, sizes).dictionary_encode()
    names = array_of([_producer_text(each.as_py()) for each in codes.dictionary], pa.string())
    found = names.take(codes.indices)
    odd = {index: each[0] for index, each in rows.odd_frames.items() if each}
    if not odd:
        return found
    values = found.to_pylist()
    for index, head in odd.items():
        values[index] = head.producer
    return array_of(values, pa.string())


def _producer_text(octets: bytes) -> str | None:
    """Return `connectionId:sessionId:value` of a producer's bytes."""
    connection = text_in(octets[_PRODUCER_TEXT_AT:-16])
    value = int.from_bytes(octets[-16:-8], "big", signed=True)
    session = int.from_bytes(octets[-8:], "big", signed=True)
    return f"{connection}:{session}:{value}"


def _marshalled(rows: Rows, bulk: Bulk) -> dict[int, bytes]:
    """Return the properties of the plain messages that have some."""
    frames = rows.frames_at_once
    some = frames.is_plain & (frames.properties_size > 0)
    found = zip(
        frames.index[some].tolist(),
        frames.properties_at[some].tolist(),
        frames.properties_size[some].tolist(),
        strict=True,
    )
    return {index: bulk.data[at : at + size] for index, at, size in found}


def _told(name: str, value_of: Callable[[bytes | None], Any]) -> Builder:
    """Return the builder of what *value_of* tells of a message's properties."""

    def build(rows: Rows, bulk: Bulk) -> pa.Array:
        values: list[Any] = [None] * len(bulk)
        nothing = value_of(None)
        for index in rows.frames_at_once.index.tolist():
            values[index] = nothing
        octets: dict[int, bytes | None] = {**_marshalled(rows, bulk)}
        for index, found in rows.odd_frames.items():
            octets[index] = found[1].properties if found else None
            values[index] = nothing if found else None
        for index, each in octets.items():
            if each is not None:
                values[index] = rows.guarded(rows.records[index], partial(_of, value_of, each))
        return array_of(values, COLUMNS[name].arrow)

    return build


def _of(value_of: Callable[[bytes], Any], octets: bytes, _start: int, _end: int) -> Any:
    return value_of(octets)


def _marked(name: str, key: str, value_of: Callable[[bytes | None], str | None]) -> Builder:
    """Return the builder of what *value_of* tells of messages with the property *key*."""
    octets, told = key.encode(), _told(name, value_of)
    return lambda rows, bulk: told(rows, bulk) if octets in bulk.data else _nulls(name, len(bulk))


def _ack(name: str) -> Builder:
    def build(rows: Rows, bulk: Bulk) -> pa.Array:
        if ((bulk["command"] == REMOVE) & (bulk["value_at"] > 0)).any():
            return BUILDERS[name](rows)
        return _nulls(name, len(bulk))

    return build


def _absent(name: str) -> Builder:
    return lambda rows, bulk: _nulls(name, len(bulk))


HEAD, TAIL = 0, 1
FACTS: dict[str, Builder] = {
    "producer_id": _producer,
    "persistent": _figure("persistent", HEAD, "persistent"),
    "priority": _figure("priority", HEAD, "priority"),
    "sent_at": _figure("sent_at", HEAD, "timestamp", is_time=True),
    "expires_at": _figure("expires_at", HEAD, "expiration", is_time=True),
    "compressed": _figure("compressed", TAIL, "compressed"),
    "redeliveries": _figure("redeliveries", TAIL, "redeliveries"),
    "properties": _told("properties", pairs_in),
    "dead_letter_cause": _marked("dead_letter_cause", CAUSE_PROPERTY, cause_in),
    "retry_of": _marked("retry_of", RETRY_PROPERTY, retry_in),
    **{
        name: _rare(name, HEAD, name)
        for name in Head._fields
        if name in COLUMNS and name not in ("persistent", "priority")
    },
    **{name: _rare(name, TAIL, name) for name in ("jms_type", "user_id", "broker_path")},
    **{name: _ack(name) for name in ("ack_type", "consumer_id", "ack_cause")},
    # A chunk with records of subscriptions is read one by one.
    **{name: _absent(name) for name in ("selector", "no_local", "retroactive")},
}
