"""Offsets of a stream in a journal, as Spark's checkpoint keeps them."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from lockkeeper_analytics.errors import AnalyticsError
from lockkeeper_analytics.reading.ranges import Ranges, ranges_in

StreamOffset = dict[str, dict[str, Any]]
"""What Spark keeps: the offset of each journal by its name."""


@dataclass(frozen=True, slots=True)
class JournalOffset:
    """Everything before byte `position` of data file `file` has been read; batches begin there.

    `first` is the file that the stream began with. `gone` are the numbers of later ones that need
    not be read, as ranges such as `5-6,9`: they were not there when the stream began, or hold again
    what others hold. `copies` are the lengths of files, by their numbers, that the broker had
    compacted when the stream began: of those that are not read yet, and of this one.

    Spark keeps where the first step ends, but not where it begins, which is asked for anew when the
    query is started again before that step is done. So an offset where a stream begins says so
    (`is_beginning`), and the one where its first step ends has its fields, `began`.
    """

    file: int
    position: int
    first: int
    gone: str = ""
    copies: Mapping[str, int] = field(default_factory=dict)
    is_beginning: bool = False
    began: Mapping[str, Any] = field(default_factory=dict)

    @property
    def place(self) -> tuple[int, int]:
        """Return what orders offsets of one journal."""
        return self.file, self.position

    def copy_of(self, number: int) -> int:
        """Return how long the copy was that is read of file *number*, 0 for the file itself."""
        return self.copies.get(str(number), 0)

    @property
    def known_gone(self) -> Ranges:
        """Return the numbers of the files behind this one that need not be read."""
        return ranges_in(self.gone)


@dataclass(frozen=True, slots=True)
class Lost:
    """What was removed or compacted before it was read: data file `file_id` from byte `start` on.

    And all of the files behind it up to number `last`, where these are very many.
    """

    directory: str
    file_id: int
    start: int
    last: int = 0

    def __str__(self) -> str:
        """Return the range in words."""
        more = f", up to db-{self.last}.log" if self.last > self.file_id else ""
        return f"db-{self.file_id}.log from byte {self.start} on{more}"


def offset_from(told: Mapping[str, Any], name: str) -> JournalOffset:
    """Return the offset of the journal *name* in a checkpoint of Spark; raises AnalyticsError."""
    # Earlier versions also noted which file was the last one.
    fields = {name: value for name, value in told.items() if name != "seen"}
    try:
        return JournalOffset(**fields)
    except TypeError as error:
        reason = f"the checkpoint's offset of {name} is not one of this version: {error}"
        raise AnalyticsError(f"{reason}; begin with a new checkpoint") from error


def offset_fields(offset: JournalOffset) -> dict[str, Any]:
    """Return *offset* for Spark's checkpoint."""
    return asdict(offset)
