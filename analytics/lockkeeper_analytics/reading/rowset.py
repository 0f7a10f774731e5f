"""The records of one chunk with what has been decoded of them so far."""

from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import pyarrow as pa

from lockkeeper.journal.decode import decode_destination, decode_transaction
from lockkeeper.journal.errors import BadRecordError
from lockkeeper.journal.files import data_file_name
from lockkeeper.journal.walk import REMOVE, QuickRecord
from lockkeeper.message import openwire
from lockkeeper.message.destination import Destination
from lockkeeper.message.errors import MalformedMessageError
from lockkeeper.message.ids import LocalTransactionId
from lockkeeper_analytics.reading.asked import ReadOptions
from lockkeeper_analytics.reading.bulk import Bulk
from lockkeeper_analytics.reading.bulk_frames import BulkFrames
from lockkeeper_analytics.reading.frames import FrameReader, Head, Tail
from lockkeeper_analytics.reading.partitions import Part
from lockkeeper_analytics.reading.records import is_message
from lockkeeper_analytics.reading.schema import BODY_COLUMNS, Needs, needs_of
from lockkeeper_analytics.reading.times import Bounds

_T = TypeVar("_T")
TRANSACTIONS_MAX = 10_000
_FIRST, _SECOND = 0x0A, b"\x08"
_ONE_BYTE, _LOCAL_MIN, _NEGATIVE = 128, 7, 10
FRAME_AT = 4
"""So many bytes tell a frame's length before it; without more there is no frame."""


def _local_text(encoded: bytes) -> str:
    """Return the text form of a local transaction laid out as usual; nothing: it is another.

    A structure in a structure: the connection, and a number that is not negative.
    """
    if len(encoded) < _LOCAL_MIN or encoded[0] != _FIRST or encoded[2] != _FIRST:
        return ""
    behind = 4 + encoded[3]
    number = encoded[behind + 1 :]
    is_usual = encoded[1] == len(encoded) - 2 < _ONE_BYTE and encoded[3] < _ONE_BYTE
    if not is_usual or encoded[behind : behind + 1] != _SECOND or not 0 < len(number) < _NEGATIVE:
        return ""
    value = 0
    for octet in reversed(number):
        value = value << 7 | octet & 127
    if number[-1] >= _ONE_BYTE or any(octet < _ONE_BYTE for octet in number[:-1]):
        return ""
    try:
        return str(LocalTransactionId(encoded[4:behind].decode(), value))
    except UnicodeDecodeError:
        return ""


class Ack(NamedTuple):
    """The facts of an acknowledgement that a remove record carries."""

    ack_type: str
    consumer_id: str | None
    ack_cause: str | None


UNMATCHED = Ack("unmatched", None, None)
"""ActiveMQ writes an empty acknowledgement where a subscription's selector did not match."""


class Context:
    """What outlives a chunk: the part, the options, and what was met before.

    Errors call the file *place*.
    """

    def __init__(self, part: Part, options: ReadOptions, place: str = "") -> None:
        self.part = part
        self.options = options
        self.name = data_file_name(part.file_id)
        self.place = place or part.path
        self.needs = needs_of(options.columns)
        self.with_content = any(name in options.columns for name in BODY_COLUMNS)
        self.frames = FrameReader()
        self.destinations: dict[bytes, Destination] = {}
        self.transactions: dict[bytes, str] = {}


class Rows:
    """The records that become rows; positions in `data` become file offsets by adding `base`."""

    def __init__(
        self,
        context: Context,
        data: bytes,
        base: int,
        records: list[QuickRecord] | Bulk,
        bounds: Bounds,
    ) -> None:
        self.context = context
        self.data = data
        self.base = base
        self._given = records
        self.bounds = bounds

    def __len__(self) -> int:
        return len(self._given)

    @property
    def bulk(self) -> Bulk | None:
        """The records all at once, where they were read so."""
        return self._given if isinstance(self._given, Bulk) else None

    @cached_property
    def records(self) -> list[QuickRecord]:
        """The records one by one; where they were read at once, only with their values."""
        return self._given.records() if isinstance(self._given, Bulk) else self._given

    @cached_property
    def destination_codes(self) -> pa.DictionaryArray:
        """The destination's bytes of records that were read at once, each kind once."""
        assert self.bulk is not None
        return self.bulk.slices("destination").dictionary_encode()

    @cached_property
    def frames_at_once(self) -> BulkFrames:
        """The messages of records that were read at once."""
        assert self.bulk is not None
        return BulkFrames(self.bulk)

    @cached_property
    def odd_frames(self) -> dict[int, tuple[Head, Tail] | None]:
        """Head and tail of those that are not laid out plainly, by their record's index."""
        frames = self.frames_at_once
        return {
            index: self.guarded(self.records[index], self._head_and_tail)
            for index in frames.index[~frames.is_plain].tolist()
        }

    @cached_property
    def _frames(self) -> tuple[list[Head | None], list[Tail | None]]:
        read = self._head_and_tail if self.context.needs & Needs.TAIL else self._head_only
        heads: list[Head | None] = []
        tails: list[Tail | None] = []
        for record in self.records:
            found = self.guarded(record, read) if is_message(record) else None
            heads.append(found[0] if found else None)
            tails.append(found[1] if found else None)
        return heads, tails

    @property
    def heads(self) -> list[Head | None]:
        """The heads of the messages, None for other records."""
        return self._frames[0]

    @property
    def tails(self) -> list[Tail | None]:
        """The tails of the messages, None for other records."""
        return self._frames[1]

    @cached_property
    def acks(self) -> list[Ack | None]:
        """The acknowledgements of the removes that carry one, None for other records."""
        return [
            self._ack_of(record) if record[0] == REMOVE and record[5] else None
            for record in self.records
        ]

    def _ack_of(self, record: QuickRecord) -> Ack | None:
        return self.guarded(record, self._ack) if record[6] > FRAME_AT else UNMATCHED

    def guarded(self, record: QuickRecord, read: Callable[[int, int], _T]) -> _T | None:
        """Return what *read* makes of the frame of *record*, at data[start:end].

        Raises BadRecordError when it is malformed, or returns None when damage is skipped.
        """
        start, end = record[5] + 4, record[5] + record[6]
        try:
            return read(start, end)
        except (MalformedMessageError, IndexError, BadRecordError) as error:
            if self.context.options.skip_corrupt:
                return None
            raise self._located(error, record[1]) from None

    def _located(self, error: Exception, position: int) -> BadRecordError:
        """Return *error* with the place of the record at data[position]."""
        reason = error.reason if isinstance(error, BadRecordError) else str(error)
        return BadRecordError(reason, self.context.place, self.base + position)

    def each_tail(self, value_of: Callable[[Tail], _T]) -> list[_T | None]:
        """Return *value_of* each message's tail; malformed ones as in `guarded`."""

        def value(record: QuickRecord, tail: Tail) -> _T | None:
            return self.guarded(record, lambda _start, _end: value_of(tail))

        pairs = zip(self.records, self.tails, strict=True)
        return [None if tail is None else value(record, tail) for record, tail in pairs]

    def destination(self, encoded: bytes) -> Destination:
        """Return the destination that the bytes of a record's KahaDestination name.

        Raises BadRecordError.
        """
        known = self.context.destinations
        if encoded not in known:
            try:
                known[encoded] = decode_destination(encoded)
            except BadRecordError as error:
                bulk = self.bulk
                had = bulk.slices("destination").to_pylist() if bulk else self._each(3)
                raise self._located(error, self._position(had.index(encoded))) from None
        return known[encoded]

    def transaction(self, encoded: bytes | None) -> str | None:
        """Return the text form of the transaction in the bytes of a record's KahaTransactionInfo.

        Raises BadRecordError.
        """
        if encoded is None:
            return None
        known = self.context.transactions
        if encoded not in known:
            if len(known) >= TRANSACTIONS_MAX:
                known.clear()
            try:
                known[encoded] = _local_text(encoded) or str(decode_transaction(encoded))
            except BadRecordError as error:
                had = self.bulk.transactions() if self.bulk else self._each(7)
                raise self._located(error, self._position(had.index(encoded))) from None
        return known[encoded]

    def _each(self, field: int) -> list[Any]:
        return [record[field] for record in self.records]

    def _position(self, index: int) -> int:
        return self.records[index][1]

    def _head_only(self, start: int, end: int) -> tuple[Head, None]:
        return self.context.frames.head(self.data, start, end)[0], None

    def _head_and_tail(self, start: int, end: int) -> tuple[Head, Tail]:
        frames = self.context.frames
        head, position = frames.head(self.data, start, end)
        return head, frames.tail(self.data, (start, end), position, self.context.with_content)

    def _ack(self, start: int, end: int) -> Ack:
        ack, _ = openwire.decode(self.data[start:end])
        if not isinstance(ack, openwire.MessageAck):
            raise MalformedMessageError(f"{type(ack).__name__} where an ack must be")
        cause = ack.poison_cause
        try:
            kind = openwire.AckType(ack.ack_type).name.lower()
        except ValueError:
            kind = str(ack.ack_type)
        consumer = str(ack.consumer_id) if ack.consumer_id else None
        return Ack(kind, consumer, None if cause is None else cause.message or cause.class_name)
