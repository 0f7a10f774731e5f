"""The records of a chunk all at once: where everything lies in them, as numpy arrays.

Adds and removes laid out as brokers lay them out, and records that belong to no destination, are
located here with a few operations for all together. A chunk that holds anything else is left to
`lockkeeper.journal.walk`, record by record, as is one that is damaged: that tells where.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lockkeeper.journal.errors import BadRecordError
from lockkeeper.journal.walk import ADD, REMOVE, QuickRecord
from lockkeeper.message.layout import BLOB_MESSAGE, BROKER_IN_TIME_FROM_END
from lockkeeper_analytics.reading.record_sizes import Numbers, sizes_of
from lockkeeper_analytics.reading.records import (
    ACK_MAP,
    AUDIT,
    COMMIT,
    PREPARE,
    ROLLBACK,
    TRACE,
    complete,
)

Flags = npt.NDArray[np.bool_]

WITHOUT_DESTINATION = (TRACE, PREPARE, COMMIT, ROLLBACK, AUDIT, ACK_MAP)
_TAGS = {"transaction": 0x0A, "destination": 0x12, "id": 0x1A, "value": 0x22, "key": 0x2A}
_ONE_BYTE_MAX = 128
_FRAME_MIN = 4 + 1 + BROKER_IN_TIME_FROM_END


class Bulk:
    """Where the records of `data` lie, and in them destination, id, value, transaction and key.

    Each is a pair of arrays, place and length; the length is 0 where there is none. `batch`
    counts the batches of the chunk. The value is as in a QuickRecord. `others` are the records
    that are neither add nor remove, by their index.
    """

    def __init__(self, data: bytes, arrays: dict[str, Numbers], others: dict[int, QuickRecord]):
        self.data = data
        self._arrays = arrays
        self.others = others

    def __len__(self) -> int:
        return len(self._arrays["offset"])

    def __getitem__(self, name: str) -> Numbers:
        """Return one of the arrays."""
        return self._arrays[name]

    def kept(self, keep: Flags) -> "Bulk":
        """Return the records for which *keep* is true."""
        arrays = {name: values[keep] for name, values in self._arrays.items()}
        moved = np.cumsum(keep) - 1
        others = {int(moved[index]): record for index, record in self.others.items() if keep[index]}
        return Bulk(self.data, arrays, others)

    def slices(self, name: str) -> pa.Array:
        """Return the bytes of *name* of each record, null where it has none."""
        return slices_of(self.data, self._arrays[f"{name}_at"], self._arrays[f"{name}_size"])

    def transactions(self) -> list[bytes | None]:
        """Return the bytes of the transaction of each record, null where it has none."""
        found: list[bytes | None] = self.slices("transaction").to_pylist()
        for index, value in self.other_transactions().items():
            found[index] = value
        return found

    def other_transactions(self) -> dict[int, bytes]:
        """Return the transactions of `others` that have one, by their index, in order."""
        return {index: record[7] for index, record in self.others.items() if record[7] is not None}

    def records(self) -> list[QuickRecord]:
        """Return the records as QuickRecords without the parts that `slices` gives."""
        names = ("command", "offset", "size", "value_at", "value_size")
        columns = (self._arrays[name].tolist() for name in names)
        return [
            (command, offset, size, b"", b"", at, length, None, None, 0)
            for command, offset, size, at, length in zip(*columns, strict=True)
        ]

    def stored_at(self) -> Numbers:
        """Return the brokerInTime of each add in ms, 0 for other records."""
        found = np.zeros(len(self), np.int64)
        (adds,) = np.nonzero(self._arrays["command"] == ADD)
        ends = self._arrays["value_at"][adds] + self._arrays["value_size"][adds]
        places = (ends - BROKER_IN_TIME_FROM_END)[:, None] + np.arange(8)
        octets = np.frombuffer(self.data, np.uint8)[places]
        found[adds] = octets.view(">i8").ravel()
        return found


def slices_of(data: bytes, start: Numbers, size: Numbers) -> pa.Array:
    """Return the bytes at *start* of *size*, which follow one another; null where that is 0."""
    count = len(start)
    # Every second element of an array over the whole chunk is a slice that is wanted.
    bounds = np.empty(2 * count, np.int32)
    bounds[0::2] = start
    bounds[1::2] = start + size
    buffers = [None, pa.py_buffer(bounds), pa.py_buffer(data)]
    everything = pa.Array.from_buffers(pa.binary(), max(2 * count - 1, 0), buffers)
    return everything.take(pa.array(np.arange(0, 2 * count, 2), mask=size == 0))


def bulk_of(data: bytes, batches: Sequence[tuple[int, int]]) -> Bulk | None:
    """Return the records in all *batches* of *data*; None when some need a closer look."""
    walked = sizes_of(data, batches)
    if walked is None:
        return None
    offsets, sizes, batch = walked
    octets = np.frombuffer(data, np.uint8)
    commands = octets[offsets + 5].astype(np.int64)
    plain = (commands == ADD) | (commands == REMOVE)
    arrays = {"offset": offsets, "size": sizes, "batch": batch, "command": commands}
    located = _Located(octets, offsets[plain], sizes[plain], commands[plain])
    if not np.isin(commands[~plain], WITHOUT_DESTINATION).all() or not located.find():
        return None
    for name, values in located.found.items():
        # Where nothing is the slice is empty, in its place.
        whole = offsets.copy() if name.endswith("_at") else np.zeros(len(offsets), np.int64)
        whole[plain] = values
        arrays[name] = whole
    others: dict[int, QuickRecord] = {}
    for index in np.flatnonzero(~plain).tolist():
        offset, size = int(offsets[index]), int(sizes[index])
        quick: QuickRecord
        quick = (int(commands[index]), offset, size, b"", b"", offset + 5, size - 5, None, None, 0)
        try:
            quick = complete(data, quick, "", 0)
        except BadRecordError:
            return None
        others[index] = quick
        arrays["value_at"][index], arrays["value_size"][index] = quick[5], quick[6]
    return Bulk(data, arrays, others)


class _Located:
    """Finds the fields of adds and removes; `find` says whether all are laid out as usual."""

    def __init__(
        self, octets: npt.NDArray[np.uint8], offsets: Numbers, sizes: Numbers, commands: Numbers
    ) -> None:
        # Behind a record that lies at the very end there must be something to look at.
        self._octets = octets
        self._last = len(octets) - 1
        self._stop = offsets + sizes
        self._is_add = commands == ADD
        # The record's size tells how many bytes the varint before its fields takes.
        self._at = offsets + np.where(sizes < 135, 7, np.where(sizes < 16392, 8, 9))
        self.found: dict[str, Numbers] = {}

    def find(self) -> bool:
        """Fill `found`; false when one record is laid out otherwise."""
        return (
            self._short("transaction", is_optional=True)
            and self._short("destination")
            and self._short("id")
            and self._value()
            and self._rest()
        )

    def _octet(self, at: Numbers) -> Numbers:
        return self._octets[np.minimum(at, self._last)].astype(np.int64)

    def _short(self, name: str, is_optional: bool = False) -> bool:
        """Take a field whose length is one byte."""
        present = self._octet(self._at) == _TAGS[name]
        size = self._octet(self._at + 1)
        if not is_optional and not present.all():
            return False
        if (size[present] >= _ONE_BYTE_MAX).any():
            return False
        self.found[f"{name}_at"] = self._at + 2
        self.found[f"{name}_size"] = np.where(present, size, 0)
        self._at = self._at + np.where(present, size + 2, 0)
        return True

    def _value(self) -> bool:
        """Take the message, or the acknowledgement that a remove may carry."""
        at = self._at
        present = (at < self._stop) & (self._octet(at) == _TAGS["value"])
        if not present[self._is_add].all():
            return False
        first, second, third = (self._octet(at + number) for number in (1, 2, 3))
        two, three = first >= _ONE_BYTE_MAX, (first >= _ONE_BYTE_MAX) & (second >= _ONE_BYTE_MAX)
        if (present & three & (third >= _ONE_BYTE_MAX)).any():
            return False
        size = first & 127
        size = np.where(two, size | (second & 127) << 7, size)
        size = np.where(three, size | third << 14, size)
        place = at + 2 + two + three
        self.found["value_at"] = np.where(present, place, 0)
        self.found["value_size"] = np.where(present, size, 0)
        self._at = np.where(present, place + size, at)
        return True

    def _rest(self) -> bool:
        """Check what stands behind the value, take a remove's key, and look at the message."""
        at, stop, is_add = self._at, self._stop, self._is_add
        tail = (self._octet(at) == 0x28) & (self._octet(at + 1) < 10)
        tail &= (self._octet(at + 2) == 0x30) & (at + 4 == stop)
        size = self._octet(at + 1)
        keyed = ~is_add & (at < stop)
        key = (self._octet(at) == _TAGS["key"]) & (size == stop - at - 2) & (size < _ONE_BYTE_MAX)
        self.found["key_at"] = np.where(keyed, at + 2, stop)
        self.found["key_size"] = np.where(keyed, size, 0)
        frames = self.found["value_size"][is_add] >= _FRAME_MIN
        kinds = self._octet(self.found["value_at"] + 4)[is_add]
        ends = np.where(is_add, tail, np.where(keyed, key, at == stop))
        return bool(ends.all() and frames.all() and (kinds != BLOB_MESSAGE).all())
