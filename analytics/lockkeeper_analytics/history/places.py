"""Formats and places of histories that are written to."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

from lockkeeper_analytics.errors import AnalyticsError, OptionError
from lockkeeper_analytics.history.folders import Folder
from lockkeeper_analytics.history.formats import Format
from lockkeeper_analytics.history.place import Place
from lockkeeper_analytics.reading.delta_log import is_table
from lockkeeper_analytics.reading.kept import BROKER_FOLDER, folder_of
from lockkeeper_analytics.reading.storage import is_url

_LOCK = ".lock"


def format_of(out: str, asked: Format | None) -> Format:
    """Return the format of the history in *out*, or the one that is *asked* for a new one.

    Raises OptionError when there is one of another format, or *out* does not go with the format.
    """
    there = _format_in(out)
    if asked and there and asked is not there:
        raise OptionError(
            f"option format: the history in {out} is {there}; keep it in another folder"
        )
    if asked is Format.PARQUET and is_url(out):
        reason = "its log lets several files of an object store count at once"
        raise OptionError(f"option format: a history in {out} is kept as delta: {reason}")
    return asked or there or (Format.DELTA if is_url(out) else Format.PARQUET)


def _format_in(out: str) -> Format | None:
    if is_table(out):
        return Format.DELTA
    if not is_url(out) and any(Path(out).glob(f"{BROKER_FOLDER}*/*/*.parquet")):
        return Format.PARQUET
    return None


@contextmanager
def place_in(out: str, broker: str, form: Format, columns: pa.Schema) -> Iterator[Place]:
    """Yield the place of *broker* in the history in *out*, a path or URL, of the format *form*.

    No other run on this machine writes to it meanwhile. Raises AnalyticsError when one does, and
    OptionError for a name that is another one within a URL.
    """
    if is_url(out):
        if "%" in folder_of(broker):
            reason = "letters of ASCII, digits, `.`, `_` and `-`: give it another one, NAME=DIR"
            raise OptionError(f"option path: the name {broker!r} in an object store takes {reason}")
        yield _delta_place(out, broker, columns)
        return
    folder = Path(out) / folder_of(broker)
    with _alone(folder):
        yield Folder(folder) if form is Format.PARQUET else _delta_place(out, broker, columns)


def _delta_place(out: str, broker: str, columns: pa.Schema) -> Place:
    try:
        from lockkeeper_analytics.history.deltas import DeltaPlace
    except ImportError:
        reason = "a Delta table takes the package deltalake: pip install 'lockkeeper-mq[delta]'"
        raise OptionError(f"option format: {reason}") from None
    return DeltaPlace(out, broker, columns)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Let no other run write to *folder* meanwhile. Raises AnalyticsError when one does."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / _LOCK).open("wb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            reason = "another run writes to it; run again when that is done"
            raise AnalyticsError(f"{folder}: {reason}") from None
        yield
