"""`files`: one row for each data file, with what pins it (kahadb.md section 6).

A file may go when nothing live is in it, and when every file whose messages its records end is
gone or goes with it: otherwise those messages would come back.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from lockkeeper_analytics.reading.asked import ReadOptions
from lockkeeper_analytics.reading.partitions import counted_files
from lockkeeper_analytics.reading.schema import FLAG, INT, LONG, TEXT, TIME
from lockkeeper_analytics.tables.filters import batches_of, of, plan_directories, whole
from lockkeeper_analytics.tables.history import History
from lockkeeper_analytics.tables.lives import FileLife
from lockkeeper_analytics.tables.shape import COUNTS, NUMBERS, TEXTS, Table, fields


@dataclass(slots=True)
class Kept:
    """A data file, and what needs it."""

    name: str
    size: int
    is_archived: bool
    is_current: bool
    life: FileLife
    live: int = 0
    live_bytes: int = 0
    owners: dict[str, int] = field(default_factory=dict)
    subscriptions: list[str] = field(default_factory=list)
    transactions: list[str] = field(default_factory=list)
    acknowledges: list[int] = field(default_factory=list)
    goes: bool = False

    @property
    def is_needed(self) -> bool:
        """Tell whether something in the file itself keeps it."""
        return bool(self.is_current or self.live or self.subscriptions or self.transactions)

    @property
    def pins(self) -> list[str]:
        """What keeps the file, in words; empty: nothing does."""
        if self.is_archived or self.goes:
            return []
        pins = ["it is being written"] if self.is_current else []
        pins += [f"{count} messages of {owner}" for owner, count in self.owners.items()]
        pins += [f"subscription {key}" for key in self.subscriptions]
        pins += [f"transaction {identifier}" for identifier in self.transactions]
        pins += [f"acknowledges messages in file {number}" for number in self.acknowledges]
        return pins


_FIELDS = fields(
    ("directory", TEXT, lambda row: row.directory, "the journal directory, as it was named"),
    ("file_id", INT, of(lambda f: f.life.file_id), "number of the data file"),
    ("file", TEXT, of(lambda f: f.name), "its name"),
    ("file_bytes", LONG, of(lambda f: f.size), "its length, with space prepared for later"),
    ("is_current", FLAG, of(lambda f: f.is_current), "it is the last one, which is written to"),
    ("is_archived", FLAG, of(lambda f: f.is_archived), "it is in `data-archive`"),
    ("records", LONG, of(lambda f: f.life.records), "records in it"),
    ("adds", LONG, of(lambda f: f.life.adds), "messages in it"),
    ("removes", LONG, of(lambda f: f.life.removes), "acknowledgements in it"),
    ("first_at", TIME, of(lambda f: f.life.after), "its first record was written then or later"),
    ("last_at", TIME, of(lambda f: f.life.before), "its last one then, as far as is known"),
    ("live_messages", LONG, of(lambda f: f.live), "messages in it that are not done with"),
    ("live_bytes", LONG, of(lambda f: f.live_bytes), "the size of their records"),
    ("live_by_destination", COUNTS, of(lambda f: list(f.owners.items())), "whose they are"),
    ("subscriptions", TEXTS, of(lambda f: f.subscriptions), "live ones that were made in it"),
    ("transactions", TEXTS, of(lambda f: f.transactions), "open and prepared ones in it"),
    (
        "acknowledges",
        NUMBERS,
        of(lambda f: f.acknowledges),
        "files that stay and hold messages which records of this one end",
    ),
    ("pinned_by", TEXTS, of(lambda f: f.pins), "all of this in words; empty: nothing keeps it"),
    ("freed_by_cleanup", FLAG, of(lambda f: f.goes), "a clean-up would remove it now"),
)

LISTED = frozenset(("directory", "file_id", "file", "file_bytes", "is_current", "is_archived"))
"""The columns that the files themselves tell, without what is in them."""


def read(directory: str, options: ReadOptions) -> Iterator[pa.RecordBatch]:
    """Yield the data files of *directory*, oldest first."""
    found = counted_files(directory)
    if LISTED.issuperset(options.columns):
        history = History()
    else:
        history, _ = whole(directory, options, ())
    kept = {
        each.file_id: Kept(
            each.name,
            each.size,
            each.is_archived,
            each.file_id == found[-1].file_id,
            history.files.get(each.file_id) or FileLife(each.file_id),
        )
        for each in found
    }
    _count(kept, history)
    _decide(kept)
    yield from batches_of(directory, iter(kept.values()), _FIELDS, options)


def _count(kept: Mapping[int, Kept], history: History) -> None:
    for (kind, name), place in history.destinations.items():
        for message in place.live.values():
            file = kept.get(message.located.file_id)
            if file is not None:
                owner = f"{kind}://{name}"
                file.live += 1
                file.live_bytes += message.located.record_bytes
                file.owners[owner] = file.owners.get(owner, 0) + 1
    for (_, key), subscription in history.subscriptions.items():
        file = kept.get(subscription.entry.file_id)
        if file is not None and key not in file.subscriptions:
            file.subscriptions.append(key)
    for identifier, opened in history.open.items():
        for number in sorted(opened.files & kept.keys()):
            kept[number].transactions.append(identifier)


def _decide(kept: Mapping[int, Kept]) -> None:
    """Find the files that may go together, and what the acknowledgements in others are for."""
    staying = {number for number, file in kept.items() if file.is_needed and not file.is_archived}
    there = {number for number, file in kept.items() if not file.is_archived}
    while True:
        needed = {
            number for number in there - staying if kept[number].life.refers & (staying - {number})
        }
        if not needed:
            break
        staying |= needed
    for number, file in kept.items():
        file.goes = number in there - staying
        file.acknowledges = sorted(file.life.refers & (staying - {number}))


TABLE = Table(
    "files",
    "one row for each data file, with what pins it",
    _FIELDS.columns,
    tuple(_FIELDS.columns),
    plan_directories,
    read,
    has_destinations=False,
)
