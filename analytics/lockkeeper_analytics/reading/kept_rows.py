"""Records of a file of a history to Arrow batches, as `rows` makes them of a journal's."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lockkeeper.message.destination import SCHEMES, Destination
from lockkeeper_analytics.errors import AnalyticsError
from lockkeeper_analytics.reading.arrays import TIMESTAMP, repeated
from lockkeeper_analytics.reading.asked import ReadOptions, is_asked_for
from lockkeeper_analytics.reading.kept import has_kept_name
from lockkeeper_analytics.reading.partitions import Part
from lockkeeper_analytics.reading.pins import gone
from lockkeeper_analytics.reading.schema import DIRECTORY, arrow_schema_of
from lockkeeper_analytics.reading.storage import file_system, is_url

_CHOSEN_BY = ("kind", "destination_kind", "destination", "written_after", "written_before")
_ROWS_PER_BATCH = 8192
VERSION_KEY = b"lockkeeper.schema"
"""Name in the metadata of the number that says which columns the files have."""


def read_kept(part: Part, options: ReadOptions) -> Iterator[pa.RecordBatch]:
    """Yield the rows of the kept file of *part*, in journal order; none of one that is gone.

    Of a part that is pinned, GoneError tells that the file is gone.
    They are of the directory that is read, wherever their journal was. Columns that the file does
    not have, such as those of bodies, are null.
    """
    try:
        with opened(part.path) as file:
            there = file.schema_arrow.names
            asked = [name for name in there if name in options.columns or name in _CHOSEN_BY]
            for batch in file.iter_batches(_ROWS_PER_BATCH, columns=asked):
                kept = batch.filter(_chosen(batch, options))
                if kept.num_rows:
                    yield _told(kept, part.directory, options.columns)
    except FileNotFoundError:
        if part.is_pinned:
            raise gone(part.path) from None


@contextmanager
def opened(path: str) -> Iterator[pq.ParquetFile]:
    """Yield the file of a history at *path*, a path or URL.

    Raises FileNotFoundError, and AnalyticsError for one that is damaged, or of somebody else. Those
    that a log names may have names of their own: tools of the log's format have made them.
    """
    way_out = "put it back from a copy, or move it away, which costs the records in it"
    filesystem, inner = file_system(path) if is_url(path) else (None, path)
    try:
        with pq.ParquetFile(inner, filesystem=filesystem) as file:
            if has_kept_name(path) and VERSION_KEY not in (file.schema_arrow.metadata or {}):
                raise AnalyticsError(f"{path}: it is no file of a history; {way_out}")
            yield file
    except FileNotFoundError:
        raise
    except (pa.ArrowException, OSError) as error:
        reason = " ".join(str(error).split())
        text = f"{path}: it is no file of a history any more; {way_out} ({reason})"
        raise AnalyticsError(text) from error


def _told(rows: pa.RecordBatch, directory: str, columns: tuple[str, ...]) -> pa.RecordBatch:
    schema = arrow_schema_of(columns)
    arrays = []
    for field in schema:
        if field.name == DIRECTORY:
            arrays.append(repeated(directory, rows.num_rows, field.type))
        elif field.name in rows.schema.names:
            arrays.append(rows.column(field.name).cast(field.type))
        else:
            arrays.append(pa.nulls(rows.num_rows, field.type))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _chosen(rows: pa.RecordBatch, options: ReadOptions) -> pa.Array:
    """Tell of each row whether the options ask for it, by the rules of `rows`."""
    chosen = pa.array([True]).take(pa.array([0] * rows.num_rows, pa.int8()))
    if options.kinds:
        chosen = pc.and_(chosen, pc.is_in(rows["kind"], pa.array(sorted(options.kinds))))
    if options.since:
        bound = pa.scalar(options.since * 1000, TIMESTAMP)
        late = pc.greater_equal(rows["written_before"], bound)
        chosen = pc.and_(chosen, pc.fill_null(late, True))
    if options.latest:
        bound = pa.scalar(options.latest * 1000, TIMESTAMP)
        early = pc.less_equal(rows["written_after"], bound)
        chosen = pc.and_(chosen, pc.fill_null(early, True))
    if options.destinations:
        chosen = pc.and_(chosen, _of_destinations(rows, options))
    return chosen


def _of_destinations(rows: pa.RecordBatch, options: ReadOptions) -> pa.Array:
    """Tell of each row whether its destination is asked for; one that belongs to none stays."""

    @cache
    def is_asked(kind: str | None, name: str | None) -> bool:
        if kind is None or name is None:
            return True
        return is_asked_for(Destination(SCHEMES[kind], name), options.destinations)

    places = zip(rows["destination_kind"].to_pylist(), rows["destination"].to_pylist(), strict=True)
    return pa.array([is_asked(*place) for place in places], pa.bool_())
