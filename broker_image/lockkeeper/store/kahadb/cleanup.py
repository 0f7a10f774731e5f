"""Cleanup of data files (kahadb.md section 6): a pure question to the bookkeeping.

A file goes when nothing live is in it, and when every file whose messages its records
acknowledge, commit or drop is gone or goes with it: otherwise those would come back.
"""

from collections.abc import Mapping

from lockkeeper.journal.files import data_file_name
from lockkeeper.store.base import StoreFile
from lockkeeper.store.kahadb.file_references import (
    FileEntry,
    FileReferences,
    SubscriptionReferences,
)


def collectable(files: Mapping[int, FileEntry], pinned: set[int], staying_from: int) -> list[int]:
    """Return the ids of the files that may be deleted together, oldest first.

    *pinned* are needed for other reasons; *staying_from* and what is younger always stays.
    """
    going = {
        file_id
        for file_id, file_references in files.items()
        if file_id < staying_from and not file_references.live and file_id not in pinned
    }
    # Each file that stays keeps what undoes something in it: each is looked at once, as one
    # message may keep thousands of files, one by one.
    undoing: dict[int, list[int]] = {}
    for file_id in going:
        for needed in files[file_id].needs():
            undoing.setdefault(needed, []).append(file_id)
    staying = list(files.keys() - going)
    while staying:
        kept = going.intersection(undoing.get(staying.pop(), ()))
        going -= kept
        staying += kept
    return sorted(going)


def described(file_references: FileReferences, current: int, kept_from: int) -> list[StoreFile]:
    """Return every file, oldest first, with what keeps it besides the messages in it.

    Those from *kept_from* on tell names of queues.
    """
    return [
        StoreFile(
            file_id,
            data_file_name(file_id),
            file.size,
            file_id == current,
            _created_in(file_references, file_id),
            tuple(key for key, one in file_references.prepared.items() if file_id in one.files),
            frozenset(file.needs() & file_references.files.keys() - {file_id}),
            kept_from <= file_id,
        )
        for file_id, file in sorted(file_references.files.items())
    ]


def _created_in(file_references: FileReferences, file_id: int) -> tuple[str, ...]:
    """Return the keys of the subscriptions that the file keeps alive, each once."""
    places = file_references.subscriptions.items()
    return tuple(dict.fromkeys(key for (_, key), one in places if one.needs(file_id)))


def movable_subscriptions(
    file_references: FileReferences, current: int
) -> list[SubscriptionReferences]:
    """Return the subscriptions whose create record alone keeps a file, and may be repeated.

    Repeating it makes the subscription begin anew, so only one with nothing pending is moved.
    """
    held = {file_id for one in file_references.prepared.values() for file_id in one.files}
    return [
        entry
        for entry in file_references.subscriptions.values()
        if 0 < entry.last_create < current
        and not entry.pending
        and entry.last_create not in held
        and not file_references.files[entry.last_create].live
    ]
