"""`spark.readStream.format("lockkeeper")`: journals as they are written, from offset to offset."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    SupportsTriggerAvailableNow,
)

from lockkeeper.journal.files import FILE_ID_MAX
from lockkeeper_analytics.errors import NoJournalError, OptionError
from lockkeeper_analytics.reading.asked import ReadOptions
from lockkeeper_analytics.reading.compacted import had_ended
from lockkeeper_analytics.reading.partitions import Part, all_files, part_of
from lockkeeper_analytics.reading.storage import DataFile
from lockkeeper_analytics.streams.holding import Holder
from lockkeeper_analytics.streams.offsets import (
    JournalOffset,
    Lost,
    StreamOffset,
    offset_fields,
    offset_from,
)
from lockkeeper_analytics.streams.tail import WAY_OUT, DataLossError, Tail
from lockkeeper_analytics.tables import TABLES


class JournalStreamReader(
    DataSourceStreamReader,  # type: ignore[misc]  # pyspark is not typed here
    SupportsTriggerAvailableNow,  # type: ignore[misc]
):
    """Plans on the driver how far each journal is read, and reads each piece where Spark wants.

    Raises OptionError when the table cannot be streamed.
    """

    def __init__(self, options: ReadOptions) -> None:
        if TABLES[options.table].lost is None:
            streams = ", ".join(name for name, table in TABLES.items() if table.lost)
            raise OptionError(
                f"option table: rows of {options.table} change as the journal goes on, so it is "
                f"no stream; read it with spark.read, or stream one of {streams}"
            )
        self.options = options
        self._journals = {
            options.given_name(directory) or directory: directory
            for directory in options.directories
        }
        self._holders: dict[str, Holder] = {}
        self._target: dict[str, JournalOffset] = {}
        self._planned: dict[str, JournalOffset] = {}
        self._last_files: dict[str, int] = {}
        self._passed_over: dict[str, set[int]] = {name: set() for name in self._journals}

    def initialOffset(self) -> StreamOffset:
        """Return where a new query begins. Raises NoJournalError."""
        return {name: offset_fields(self._beginning(self._tail(name))) for name in self._journals}

    def getDefaultReadLimit(self) -> ReadLimit:
        """Return the limit that the options set."""
        limit = self.options.stream.bytes_max
        return ReadMaxBytes(limit) if limit else ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        """Remember how far the journals are sound now. Raises NoJournalError."""
        for name in self._journals:
            tail = self._tail(name)
            self._target[name] = tail.latest(tail.earliest())

    def latestOffset(self, start: StreamOffset, limit: ReadLimit) -> StreamOffset:
        """Return how far the next micro-batch reads; *start* itself when there is nothing.

        Raises NoJournalError, ForeignFileError, and DataLossError when something on the way is
        gone.
        """
        self._check_names(start)
        left = limit.max_bytes if isinstance(limit, ReadMaxBytes) else None
        planned: dict[str, JournalOffset] = {}
        # In the order of *start*: Spark compares offsets as texts.
        names = [name for name in start if name in self._journals]
        names += [name for name in self._journals if name not in start]
        for number, name in enumerate(names):
            share = None if left is None else left // (len(names) - number)
            begin, end, used = self._next(name, start, share)
            left = None if left is None else max(left - used, 0)
            planned[name] = begin if end.place == begin.place else end
        self._planned = planned
        return {name: offset_fields(offset) for name, offset in planned.items()}

    def reportLatestOffset(self) -> StreamOffset:
        """Return how far the journals are sound now, and how many bytes the query is behind."""
        report: StreamOffset = {}
        for name, offset in self._planned.items():
            tail = self._tail(name, offset.file)
            latest = tail.latest(offset)
            report[name] = {
                "file": latest.file,
                "position": latest.position,
                "bytesBehind": tail.bytes_behind(offset, latest),
            }
        return report

    def partitions(self, start: StreamOffset, end: StreamOffset) -> Sequence[InputPartition]:
        """Return the pieces between two offsets. Raises DataLossError when one is gone."""
        pieces: list[InputPartition] = []
        for name, told in end.items():
            if start.get(name) == told:
                continue
            until = offset_from(told, name)
            begun = until.began or start.get(name)
            since = offset_from(begun, name) if begun else None
            tail = self._tail(name, since.file if since else 0)
            since = since or self._beginning(tail)
            spans = list(tail.spans(since, until))
            files = list(tail.files.values())
            last = self._last_file(name, files)
            for span in spans:
                if isinstance(span, Lost):
                    self._check_loss([span])
                    pieces.append(InputPartition(span))
                    continue
                if span.file.file_id > last:
                    continue
                part = part_of(tail.directory, files, files.index(span.file), span.start, span.end)
                held = self._holder(name).place_of(span.file.file_id)
                part = replace(part, must_exist=True, size=span.file.size, held=held)
                pieces.append(InputPartition(part))
        return pieces

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one piece. Raises DataLossError when its file was just removed."""
        table, piece = TABLES[self.options.table], partition.value
        if isinstance(piece, Part):
            try:
                yield from table.rows(piece, self.options)
                return
            except FileNotFoundError:
                if had_ended(piece.path, piece.start):
                    return
                piece = Lost(piece.directory, piece.file_id, piece.start)
                self._check_loss([piece])
        yield table.lost_row(piece, self.options)

    def commit(self, end: StreamOffset) -> None:
        """Let go of the files before *end*."""
        for name, told in end.items():
            if name in self._holders:
                self._holders[name].release_before(offset_from(told, name).file)

    def stop(self) -> None:
        """Let go of all files."""
        for holder in self._holders.values():
            holder.close()

    def _next(
        self, name: str, start: StreamOffset, share: int | None
    ) -> tuple[JournalOffset, JournalOffset, int]:
        """Return where a journal's next piece begins and ends, and how many bytes it has."""
        known = offset_from(start[name], name) if name in start else None
        tail = self._tail(name, known.file if known else 0)
        begin = known or self._beginning(tail)
        target = self._target.get(name)
        if target and begin.place >= target.place:
            return begin, begin, 0
        try:
            tail.check_not_cut(begin)
        except DataLossError:
            if self.options.stream.fails_on_data_loss:
                raise
            begin = tail.noted(tail.latest(tail.earliest()))
        end = tail.advance(begin, share)
        if target and end.place > target.place:
            end = replace(begin, file=target.file, position=target.position)
        began = offset_fields(begin) if begin.is_beginning else {}
        end = replace(end, is_beginning=False, began=began)
        self._check_loss([span for span in tail.spans(begin, end) if isinstance(span, Lost)])
        return begin, end, tail.bytes_behind(begin, end)

    def _tail(self, name: str, first: int = 0) -> Tail:
        """Return a journal as it is now; its files from number *first* on are held."""
        directory = self._journals[name]
        files = self._holder(name).hold(first) if first else all_files(directory)
        if not files:
            raise NoJournalError(f"{directory}: no journal file (db-1.log, db-2.log, …) in it")
        skip_corrupt, passed_over = self.options.skip_corrupt, self._passed_over[name]
        return Tail(directory, files, skip_corrupt, passed_over, minds_copies=True)

    def _last_file(self, name: str, files: Sequence[DataFile]) -> int:
        """Return the number of the last file of a journal that may have rows until `until`."""
        last_file = TABLES[self.options.table].last_file
        if not self.options.until or last_file is None:
            return FILE_ID_MAX
        if self._last_files.get(name, FILE_ID_MAX) == FILE_ID_MAX:
            self._last_files[name] = last_file(files, self.options.until)
        return self._last_files[name]

    def _holder(self, name: str) -> Holder:
        if name not in self._holders:
            stream, look = self.options.stream, partial(all_files, self._journals[name])
            self._holders[name] = Holder(look, stream.hold_bytes, stream.hold_seconds)
        return self._holders[name]

    def _beginning(self, tail: Tail) -> JournalOffset:
        offset = tail.earliest()
        if self.options.stream.from_latest:
            latest = tail.latest(offset)
            offset = replace(latest, first=latest.file)
        return replace(tail.noted(offset), is_beginning=True)

    def _check_names(self, start: StreamOffset) -> None:
        unknown = [name for name in start if name not in self._journals]
        if unknown and self.options.stream.fails_on_data_loss:
            raise DataLossError(
                f"the checkpoint has read {', '.join(unknown)}, which the option path does not "
                f"name: name it as before, or {WAY_OUT}"
            )

    def _check_loss(self, lost: Sequence[Lost]) -> None:
        if lost and self.options.stream.fails_on_data_loss:
            what = ", ".join(map(str, lost))
            raise DataLossError(
                f"{lost[0].directory}: {what} was removed before it was read, with its file or "
                f"when that was compacted; {WAY_OUT}"
            )
