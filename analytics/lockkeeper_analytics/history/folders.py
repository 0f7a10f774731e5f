"""Parquet files without a log: names and footers tell which steps there are.

All files of a step are written beside their places first, under names that no reader looks at.
When all are on the disk, they are renamed: from the first one on the step counts. So a run that
finds one in its place puts the others in theirs, also when the journal has these records no more. A
step of which none is in its place is removed and repeated.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lockkeeper_analytics.history.place import VERSION, Step, check_version
from lockkeeper_analytics.history.writing import synced, write_rows
from lockkeeper_analytics.reading.histories import kept_files
from lockkeeper_analytics.reading.kept import DAY_FOLDER, KeptFile, kept_name
from lockkeeper_analytics.reading.kept_rows import VERSION_KEY, opened

NEXT_KEY = b"lockkeeper.next"
"""Name in the metadata of files of what the step tells of the next one."""

_UNFINISHED = ".unfinished"


class Folder:
    """The folder of one broker, on a file system of this machine."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __str__(self) -> str:
        return str(self._folder)

    def last(self) -> dict[str, Any] | None:
        """Return what the last step tells; finish that one, and remove what is left of another."""
        kept = self.files()
        name = Path(kept[-1].path).name if kept else ""
        told = _told_by(kept[-1].path) if kept else None
        for path in self._folder.glob(f"{DAY_FOLDER}*/*{_UNFINISHED}"):
            if path.name == _unfinished_name(name):
                _put_in_place(path.with_name(name))
            else:
                path.unlink()
        return told

    def add(self, step: Step) -> None:
        """Put the rows of a step in their places, once all are on the disk: then they count."""
        told = metadata_of(step)
        paths = []
        for day, rows in step.days.items():
            folder = self._folder / f"{DAY_FOLDER}{day}"
            folder.mkdir(exist_ok=True)
            paths.append(folder / kept_name(*step.begin))
            write_rows(rows.replace_schema_metadata(told), str(_unfinished(paths[-1])))
        for changed in (self._folder, *(path.parent for path in paths)):
            synced(changed)
        for path in paths:
            _put_in_place(path)

    def files(self) -> Sequence[KeptFile]:
        """Return the files of all steps."""
        return kept_files(str(self._folder))


def metadata_of(step: Step) -> dict[bytes, bytes]:
    """Return what the footers of a step's files say."""
    return {VERSION_KEY: VERSION.encode(), NEXT_KEY: json.dumps(step.following).encode()}


def _told_by(path: str) -> dict[str, Any]:
    """Return what the file at *path* says of where the next step begins. Raises AnalyticsError."""
    with opened(path) as file:
        told = file.schema_arrow.metadata
    check_version(path, told[VERSION_KEY].decode())
    found: dict[str, Any] = json.loads(told[NEXT_KEY])
    return found


def _unfinished(path: Path) -> Path:
    """Return where the file is written that is to be put at *path*; no reader looks there."""
    return path.with_name(_unfinished_name(path.name))


def _unfinished_name(name: str) -> str:
    return f".{name}{_UNFINISHED}"


def _put_in_place(path: Path) -> None:
    """Give the file that is to be at *path* its name, also on the disk."""
    _unfinished(path).replace(path)
    synced(path.parent)
