"""Pins of what a run saw of journals, so that whoever reads a piece again reads the same.

Bytes in front of a file's pinned end do not change. Where a broker prepares files, their length
tells nothing, so that the end of a file that may grow is that of its last sound batch.
"""

import json
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from lockkeeper_analytics.errors import GoneError, OptionError
from lockkeeper_analytics.reading.batches import FIRST_BYTES, is_foreign, read_chunks
from lockkeeper_analytics.reading.kept import KeptFile
from lockkeeper_analytics.reading.storage import DataFile, open_file

GROWING_MAX = 2
"""So many files at a journal's end may grow: what ActiveMQ rewrites may stand behind the one that
it writes to."""

_WAY_OUT = (
    "run again, or on a copy; a broker with spec.journal.archive, or ActiveMQ's archiveDataLogs, "
    "keeps what it no longer needs"
)


class Pinned(NamedTuple):
    """The files of a directory, in order: its data files, and those of its history of records."""

    files: tuple[DataFile, ...] = ()
    kept: tuple[KeptFile, ...] = ()


Pins = Mapping[str, Pinned]
"""What was seen of each directory."""


def may_grow(files: Iterable[DataFile]) -> list[DataFile]:
    """Return those of a journal's *files*, which are in order, that may still be written to."""
    return [file for file in files if not file.is_archived][-GROWING_MAX:]


def sound_end(path: str) -> int:
    """Return how many bytes of the file at *path* lie before the end of its last sound batch.

    All of one that is none of a journal: who reads it is to say so. Raises OSError.
    """
    end = 0
    for chunk in read_chunks(path, skip_corrupt=True):
        end = chunk.base + chunk.batches[-1][1]
    return end or _foreign_bytes(path)


def _foreign_bytes(path: str) -> int:
    """Return how long a file without a sound batch is that is none of a journal, else 0."""
    with open_file(path) as file:
        return file.seek(0, 2) if is_foreign(file.read(FIRST_BYTES)) else 0


def written_bytes(journals: Iterable[list[DataFile]], enough: int) -> int:
    """Return how many bytes *journals* have, without the room that brokers have prepared in files.

    Where there are more than *enough* anyway, files that may grow count as long as they are.
    """
    growing: list[DataFile] = []
    settled = 0
    for files in journals:
        growing += (last := may_grow(files))
        settled += sum(file.size for file in files) - sum(file.size for file in last)
    if settled > enough:
        return settled + sum(file.size for file in growing)
    return settled + sum(map(_written_in, growing))


def _written_in(file: DataFile) -> int:
    try:
        return sound_end(file.path)
    except OSError:
        # Whoever reads the journal says what is wrong; a file that is gone is none of it any more.
        return 0


def text_of(pins: Pins) -> str:
    """Return *pins* as the option `pinned` has them."""
    told = {
        directory: {"files": [file[:3] for file in pinned.files], "kept": pinned.kept}
        for directory, pinned in pins.items()
    }
    return json.dumps(told, separators=(",", ":"))


def pins_in(text: str) -> Pins:
    """Return the pins in *text*; their `size` is what counts of a file. Raises OptionError."""
    try:
        return {
            directory: Pinned(
                tuple(DataFile(number, path, size) for number, path, size in told["files"]),
                tuple(KeptFile(*each) for each in told["kept"]),
            )
            for directory, told in json.loads(text).items()
        }
    except (AttributeError, KeyError, TypeError, ValueError):
        raise OptionError("option pinned: not what a run saw of journals") from None


def gone(path: str, told: str = "and it is gone") -> GoneError:
    """Return the error that says of a file what was seen of it and what became of that."""
    return GoneError(f"{path}: the run had seen it {told}; {_WAY_OUT}")
