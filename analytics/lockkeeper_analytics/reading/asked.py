"""Options of a reader, as values; `options` makes them of texts."""

from dataclasses import dataclass
from urllib.parse import unquote

from lockkeeper.journal.files import FILE_ID_MAX
from lockkeeper.message.destination import Destination, Kind, path_matches
from lockkeeper_analytics.reading.kept import BROKER_FOLDER
from lockkeeper_analytics.reading.pins import Pins
from lockkeeper_analytics.reading.schema import DEFAULT_COLUMNS
from lockkeeper_analytics.reading.storage import name_of

BODY_BYTES_MAX = 1024 * 1024
BODY_SAMPLES = 100
"""So many bodies of a destination are looked at in each part of a file."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """A destination to keep: a name that may hold wildcards, of one kind or of any.

    One without a kind stands for streams, too; what `is_stream` for nothing else.
    """

    kind: Kind | None
    path: tuple[str, ...]
    is_stream: bool = False


@dataclass(frozen=True, slots=True)
class StreamOptions:
    """How a stream reads: from the latest record on or the first, and how much at a time.

    `bytes_max` bounds a trigger, 0 for no bound. Files that a broker has removed are held open
    until they are read, up to `hold_bytes` and `hold_seconds`; 0: none are.
    """

    from_latest: bool = False
    bytes_max: int = 0
    fails_on_data_loss: bool = True
    hold_bytes: int = 256 * 1024 * 1024
    hold_seconds: int = 600


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """What to read; `since`, `until` and `at_most` are in ms since the epoch, 0 for no bound.

    `names` has a name for each of `directories`, empty for the default. With `pushdown` a query's
    filters narrow what is read, to `kinds` (none: all), `files`, the first and the last, and to
    `partitions` of streams (none: all), too; and to what is not known to be later than `at_most`.
    `until` is another matter: a beginning. What is `pinned` is read as it was then. Of fields of
    bodies, `body_masks` hide some.
    """

    directories: tuple[str, ...]
    table: str = "records"
    columns: tuple[str, ...] = DEFAULT_COLUMNS
    destinations: tuple[Pattern, ...] = ()
    since: int = 0
    until: int = 0
    at_most: int = 0
    body_bytes_max: int = BODY_BYTES_MAX
    body_samples: int = BODY_SAMPLES
    body_masks: tuple[str, ...] = ()
    skip_corrupt: bool = False
    pushdown: bool = False
    names: tuple[str, ...] = ()
    stream: StreamOptions = StreamOptions()
    kinds: frozenset[str] = frozenset()
    files: tuple[int, int] = (0, FILE_ID_MAX)
    partitions: frozenset[int] = frozenset()
    pinned: Pins | None = None

    @property
    def latest(self) -> int:
        """The bound of what tells its time exactly, in ms, 0 for none."""
        return min(filter(None, (self.until, self.at_most)), default=0)

    def broker_of(self, directory: str) -> str:
        """Return the name for *directory*'s rows: that given for it, or else its last part.

        The folder of a broker's history has its name behind a mark.
        """
        last = name_of(directory)
        told = unquote(last.removeprefix(BROKER_FOLDER)) if last.startswith(BROKER_FOLDER) else last
        return self.given_name(directory) or told

    def given_name(self, directory: str) -> str:
        """Return the name that was given for *directory*, or nothing."""
        named = dict(zip(self.directories, self.names, strict=False))
        return named.get(directory, "")


def is_asked_for(destination: Destination, patterns: tuple[Pattern, ...]) -> bool:
    """Tell whether one of *patterns* stands for *destination*; all are asked for without any."""
    return not patterns or any(
        pattern.kind in (None, destination.kind)
        and not pattern.is_stream
        and path_matches(pattern.path, destination.path)
        for pattern in patterns
    )


def is_stream_asked_for(path: tuple[str, ...], patterns: tuple[Pattern, ...]) -> bool:
    """Tell whether one of *patterns* stands for the stream whose name has these levels."""
    return not patterns or any(
        pattern.kind is None and path_matches(pattern.path, path) for pattern in patterns
    )
