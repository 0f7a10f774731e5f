"""Files of a history of records, which stand where a journal's data files would.

    FOLDER/broker=north/day=2026-11-18/db-00000007-000000004096.parquet

A folder of one broker is named as a journal directory is. A file is known by the place in the
journal where the step began that wrote it; names are in journal order.
"""

import os
from collections.abc import Sequence
from glob import escape, glob
from pathlib import Path
from typing import NamedTuple

from lockkeeper.journal.files import FILE_ID_MAX

BROKER_FOLDER, DAY_FOLDER = "broker=", "day="
NO_DAY = "__HIVE_DEFAULT_PARTITION__"
"""What Hive, and all who took its folders over, call the folder of rows without a value."""

KEPT_IN = 10
"""A journal takes about so many times the room of its history: 6 to 20 times were measured."""

_SUFFIX = ".parquet"


class KeptFile(NamedTuple):
    """A file of a history: of which data files it may tell, first and last, and its path."""

    file_id: int
    path: str
    last_id: int


def kept_files(directory: str) -> Sequence[KeptFile]:
    """Return the files of the history in *directory*, in journal order; none: it is none."""
    pattern = os.path.join(escape(directory), f"{DAY_FOLDER}*", f"db-*{_SUFFIX}")  # noqa: PTH118
    paths = sorted(glob(pattern), key=_in_order)  # noqa: PTH207
    found: list[KeptFile] = []
    last_id, next_id = FILE_ID_MAX, FILE_ID_MAX
    next_name = ""
    for path in reversed(paths):
        name = path.rpartition("/")[2]
        if name != next_name:
            # A step ends where the next one begins.
            last_id, next_name = next_id, name
            next_id = int(name.split("-")[1])
        found.append(KeptFile(next_id, path, last_id))
    return found[::-1]


def _in_order(path: str) -> tuple[str, str]:
    """Return what orders files by their steps, and those of one by their days, none first."""
    folder, _, name = path.rpartition("/")
    return name, folder.removesuffix(NO_DAY)


def kept_for_bytes(directory: str) -> int:
    """Return for about how many bytes of a journal the files of a history stand."""
    return KEPT_IN * sum(Path(file.path).stat().st_size for file in kept_files(directory))


def kept_name(file_id: int, position: int) -> str:
    """Return the name of the files of the step that begins at *position* of a data file."""
    return f"db-{file_id:010}-{position:012}{_SUFFIX}"


def is_kept(path: str) -> bool:
    """Tell whether the file at *path* is one of a history."""
    return path.endswith(_SUFFIX)
