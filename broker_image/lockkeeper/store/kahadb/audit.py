"""Audit of the running bookkeeping against the journal: for tests, simulations and operators.

The journal is recounted by a reader of its own (`journal/recount.py`); equal means equal.
"""

from pathlib import Path

from lockkeeper.journal.recount import Kept, recount_directory
from lockkeeper.store.kahadb.file_references import FileReferences


def differences(directory: Path, file_references: FileReferences) -> list[str]:
    """Return what *file_references* have otherwise than *directory* says, a line each.

    Everything handed over must have been written. Reads the whole journal; raises JournalError
    or OSError.
    """
    recount = recount_directory(directory)
    booked = _booked(file_references)
    expected = {file_id: _described(kept) for file_id, kept in recount.files.items()}
    found = {file_id: _described(kept) for file_id, kept in booked.items()}
    lines = [
        f"db-{file_id}.log: the file_references has {found.get(file_id, 'no such file')}, "
        f"the journal {expected.get(file_id, 'no such file')}"
        for file_id in sorted(expected.keys() | found.keys())
        if expected.get(file_id) != found.get(file_id)
    ]
    pending = {place: entry.pending for place, entry in file_references.subscriptions.items()}
    lines += [
        f"{place[1]} of {place[0]}: the file_references has {pending.get(place)} pending, "
        f"the journal {recount.pending.get(place)}"
        for place in sorted(pending.keys() | recount.pending.keys(), key=str)
        if pending.get(place) != recount.pending.get(place)
    ]
    return lines


def _booked(file_references: FileReferences) -> dict[int, Kept]:
    pinned = file_references.pinned()
    return {
        file_id: Kept(
            0,
            file.live,
            (file.refers | file.awaiting) - {file_id},
            file.outcomes - {file_id},
            file_id in pinned,
        )
        for file_id, file in file_references.files.items()
    }


def _described(kept: Kept) -> str:
    """Return what a file keeps, as a text that is the same for the same."""
    return (
        f"{kept.live_bytes} bytes live, refers to {sorted(kept.refers)}, "
        f"outcomes of {sorted(kept.outcomes)}, {'pinned' if kept.is_pinned else 'not pinned'}"
    )
