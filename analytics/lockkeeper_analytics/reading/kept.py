"""Files of a history of records, which stand where a journal's data files would.

    FOLDER/broker=north/day=2026-11-18/db-00000007-000000004096.parquet

A folder of one broker is named as a journal directory is. A file is known by the place in the
journal where the step began that wrote it; names are in journal order.
"""

import os
from collections.abc import Sequence
from contextlib import suppress
from glob import escape, glob
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from lockkeeper.journal.files import FILE_ID_MAX
from lockkeeper_analytics.reading.storage import name_of

BROKER_FOLDER, DAY_FOLDER = "broker=", "day="
NO_DAY = "__HIVE_DEFAULT_PARTITION__"
"""What Hive, and all who took its folders over, call the folder of rows without a value."""

_PREFIX, _SUFFIX = "db-", ".parquet"


class KeptFile(NamedTuple):
    """A file of a history: of which data files it may tell, first and last, path, and bytes."""

    file_id: int
    path: str
    last_id: int
    size: int


def files_in_folder(directory: str) -> Sequence[KeptFile]:
    """Return the files of the history without a log in *directory*, in journal order."""
    names = f"{_PREFIX}*{_SUFFIX}"
    pattern = os.path.join(escape(directory), f"{DAY_FOLDER}*", names)  # noqa: PTH118
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
        with suppress(FileNotFoundError):
            found.append(KeptFile(next_id, path, last_id, Path(path).stat().st_size))
    return found[::-1]


def _in_order(path: str) -> tuple[str, str]:
    """Return what orders files by their steps, and those of one by their days, none first."""
    folder, _, name = path.rpartition("/")
    return name, folder.removesuffix(NO_DAY)


def folder_of(broker: str) -> str:
    """Return the name of a broker's folder."""
    return f"{BROKER_FOLDER}{quote(broker, safe='')}"


def kept_name(file_id: int, position: int, attempt: str = "") -> str:
    """Return the name of the files of the step that begins at *position* of a data file.

    With an *attempt*, no other run that begins there has files of the same name.
    """
    return f"{_PREFIX}{file_id:010}-{position:012}{attempt and f'-{attempt}'}{_SUFFIX}"


def is_kept(path: str) -> bool:
    """Tell whether the file at *path* is one of a history."""
    return name_of(path).endswith(_SUFFIX)


def has_kept_name(path: str) -> bool:
    """Tell whether the file at *path* is named as `lockkeeper keep` names them."""
    return name_of(path).startswith(_PREFIX)
