"""Files of a history, written through to the disk, or to an object store."""

import os
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from lockkeeper_analytics.reading.storage import file_system, is_url


def write_rows(rows: pa.Table, path: str) -> int:
    """Write *rows* as Parquet to *path*, a path or URL, and return how many bytes that took.

    The folder of a path is there. In an object store a file is there as a whole or not at all.
    """
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink, compression="zstd")
    return write_file(sink.getvalue(), path)


def write_file(data: bytes | pa.Buffer, path: str) -> int:
    """Write *data* to *path*, a path or URL, and return its length."""
    if is_url(path):
        filesystem, inner = file_system(path)
        with filesystem.open_output_stream(inner) as stream:
            stream.write(data)
    else:
        with Path(path).open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
    return len(data)


def remove_file(path: str) -> None:
    """Remove the file at *path*, a path or URL, if it is there."""
    if is_url(path):
        filesystem, inner = file_system(path)
        with suppress(FileNotFoundError):
            filesystem.delete_file(inner)
    else:
        Path(path).unlink(missing_ok=True)


def synced(path: Path) -> None:
    """Have on the disk what is in the file at *path*, or the names in that folder."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
