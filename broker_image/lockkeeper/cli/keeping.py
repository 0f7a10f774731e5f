"""Deep check of `journal verify`: everything that each data file keeps alive, counted twice."""

from pathlib import Path

from lockkeeper.cli.errors import FAILED, CommandError
from lockkeeper.cli.output import Column, Listing
from lockkeeper.journal.errors import JournalError
from lockkeeper.journal.files import data_file_name
from lockkeeper.journal.recount import Kept, recount_directory
from lockkeeper.store.base import StoreError
from lockkeeper.store.kahadb.audit import differences
from lockkeeper.store.kahadb.recovery import replay_directory


def keeping_listing(directory: Path) -> Listing:
    """Return a table of the files; below it, where a restart would count otherwise."""
    try:
        recount = recount_directory(directory)
        unequal = differences(directory, replay_directory(directory).file_references)
    except (JournalError, StoreError, OSError) as error:
        raise CommandError(str(error), FAILED) from error
    rows, objects = [], []
    for file_id, kept in recount.files.items():
        keeper = _pinned(kept, file_id in recount.superseded)
        refers, outcomes = sorted(kept.refers), sorted(kept.outcomes)
        rows.append(
            [data_file_name(file_id), f"{kept.live:,}", _names(refers), _names(outcomes), keeper]
        )
        objects.append(
            {
                "file_name": data_file_name(file_id),
                "live": kept.live,
                "refers": refers,
                "outcomes": outcomes,
                "pinned": kept.is_pinned,
                "superseded": file_id in recount.superseded,
            }
        )
    columns = [
        Column("File"),
        Column("Live messages", number=True),
        Column("Ends messages of"),
        Column("Ends transactions of"),
        Column("State"),
    ]
    return Listing(columns, rows, objects, below=unequal)


def _pinned(kept: Kept, is_superseded: bool) -> str:
    if is_superseded:
        return "repeats another file"
    return "kept by a subscription or a prepared transaction" if kept.is_pinned else ""


def _names(file_ids: list[int]) -> str:
    return ", ".join(str(file_id) for file_id in file_ids)
