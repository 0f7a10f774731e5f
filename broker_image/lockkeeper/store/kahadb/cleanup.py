"""Which data files may go (kahadb.md section 6): a pure question to the bookkeeping.

A file goes when nothing live is in it, and when every file whose messages its records
acknowledge, commit or drop is gone or goes with it: otherwise those would come back.
"""

from collections.abc import Mapping

from lockkeeper.journal.files import data_file_name
from lockkeeper.store.base import StoreFile
from lockkeeper.store.kahadb.ledger import FileLedger, Ledger, SubscriptionLedger


def collectable(files: Mapping[int, FileLedger], pinned: set[int], current: int) -> list[int]:
    """Return the ids of the files that may be deleted together, oldest first.

    *pinned* are needed for other reasons; *current* and what is younger always stays.
    """
    going = {
        file_id
        for file_id, ledger in files.items()
        if file_id < current and not ledger.live and file_id not in pinned
    }
    while True:
        staying = files.keys() - going
        needed = {
            file_id
            for file_id in going
            if not files[file_id].refers.isdisjoint(staying - {file_id})
        }
        if not needed:
            return sorted(going)
        going -= needed


def described(ledger: Ledger, current: int) -> list[StoreFile]:
    """Return every file, oldest first, with what keeps it besides the messages in it."""
    return [
        StoreFile(
            file_id,
            data_file_name(file_id),
            file.size,
            file_id == current,
            tuple(key for key, one in ledger.subscriptions.items() if one.last_create == file_id),
            tuple(key for key, files in ledger.prepared.items() if file_id in files),
            frozenset(file.refers & ledger.files.keys() - {file_id}),
        )
        for file_id, file in sorted(ledger.files.items())
    ]


def movable_subscriptions(ledger: Ledger, current: int) -> list[SubscriptionLedger]:
    """Return the subscriptions whose create record alone keeps a file, and may be repeated.

    Repeating it makes the subscription begin anew, so only one with nothing pending is moved.
    """
    held = {file_id for files in ledger.prepared.values() for file_id in files}
    return [
        entry
        for entry in ledger.subscriptions.values()
        if 0 < entry.last_create < current
        and not entry.pending
        and entry.last_create not in held
        and not ledger.files[entry.last_create].live
    ]
