"""Builders of columns for all records of a chunk at once; what is missing here `columns` builds."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lockkeeper.journal.walk import ADD
from lockkeeper.message.destination import SCHEMES, Destination
from lockkeeper.message.segments import STATES
from lockkeeper_analytics.reading.arrays import array_of, texts_of, times_of
from lockkeeper_analytics.reading.bulk import Bulk
from lockkeeper_analytics.reading.bulk_facts import FACTS
from lockkeeper_analytics.reading.columns import MESSAGE_TYPES, trace_text
from lockkeeper_analytics.reading.record_sizes import Numbers
from lockkeeper_analytics.reading.records import KINDS, OTHER_KIND
from lockkeeper_analytics.reading.rowset import Rows
from lockkeeper_analytics.reading.schema import COLUMNS
from lockkeeper_analytics.reading.stream_states import state_in

Builder = Callable[[Rows, Bulk], pa.Array]

SCHEME_OF = {kind: scheme for scheme, kind in SCHEMES.items()}
_KINDS = pa.array([KINDS.get(number, OTHER_KIND) for number in range(256)])
_TYPES = pa.array([MESSAGE_TYPES.get(number) for number in range(256)], pa.string())


def _numbers(name: str, values: Numbers, absent: Any = None) -> pa.Array:
    return pa.array(values, COLUMNS[name].arrow, mask=absent)


def _destination(value_of: Callable[[Destination], str]) -> Builder:
    def build(rows: Rows, bulk: Bulk) -> pa.Array:
        codes = rows.destination_codes
        names = [value_of(rows.destination(each.as_py())) for each in codes.dictionary]
        return array_of(names, pa.string()).take(codes.indices)

    return build


def _transaction(rows: Rows, bulk: Bulk) -> pa.Array:
    codes = bulk.slices("transaction").dictionary_encode()
    texts = [rows.transaction(each.as_py()) for each in codes.dictionary]
    found = array_of(texts, pa.string()).take(codes.indices)
    others = bulk.other_transactions()
    if not others:
        return found
    is_other = np.zeros(len(bulk), np.bool_)
    is_other[list(others)] = True
    told = array_of([rows.transaction(each) for each in others.values()], pa.string())
    return pc.replace_with_mask(found, pa.array(is_other), told)


def _message_type(rows: Rows, bulk: Bulk) -> pa.Array:
    octets = np.frombuffer(bulk.data, np.uint8)
    last = len(octets) - 1
    kinds = octets[np.minimum(bulk["value_at"] + 4, last)].astype(np.int64)
    return _TYPES.take(pa.array(kinds, mask=bulk["command"] != ADD))


def _trace(is_recorder: bool) -> Builder:
    def build(rows: Rows, bulk: Bulk) -> pa.Array:
        values: list[bytes | None] = [None] * len(bulk)
        for index, record in bulk.others.items():
            values[index] = trace_text(rows.data, record, is_recorder)
        return texts_of(pa.array(values, pa.binary()))

    return build


def _stream_state(rows: Rows, bulk: Bulk) -> pa.Array:
    codes = rows.destination_codes
    states = [rows.destination(each.as_py()) == STATES for each in codes.dictionary]
    values: list[str | None] = [None] * len(bulk)
    if any(states):
        index = codes.indices.fill_null(len(states)).to_numpy(zero_copy_only=False)
        found = np.array([*states, False])[index] & (bulk["command"] == ADD)
        for place in np.flatnonzero(found).tolist():
            values[place] = rows.guarded(rows.records[place], partial(state_in, rows.data))
    return array_of(values, pa.string())


BULK_BUILDERS: dict[str, Builder] = {
    "offset": lambda rows, bulk: _numbers("offset", bulk["offset"] + rows.base),
    "record_bytes": lambda rows, bulk: _numbers("record_bytes", bulk["size"]),
    "kind": lambda rows, bulk: _KINDS.take(pa.array(bulk["command"])),
    "destination_kind": _destination(lambda found: SCHEME_OF[found.kind]),
    "destination": _destination(lambda found: found.name),
    "message_id": lambda rows, bulk: texts_of(bulk.slices("id")),
    "subscription": lambda rows, bulk: texts_of(bulk.slices("key")),
    "transaction": _transaction,
    "written_after": lambda rows, bulk: times_of(rows.bounds.after),
    "written_before": lambda rows, bulk: times_of(rows.bounds.before),
    "message_bytes": lambda rows, bulk: _numbers(
        "message_bytes", bulk["value_size"] - 4, bulk["command"] != ADD
    ),
    "message_type": _message_type,
    "stored_at": lambda rows, bulk: times_of(bulk.stored_at()),
    "trace": _trace(is_recorder=False),
    "recorder": _trace(is_recorder=True),
    "stream_state": _stream_state,
    **FACTS,
}
