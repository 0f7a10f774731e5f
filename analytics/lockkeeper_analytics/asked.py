"""What a reader was asked for, as values; `options` makes them of texts."""

from dataclasses import dataclass

from lockkeeper.message.destination import Destination, Kind, path_matches
from lockkeeper_analytics.schema import DEFAULT_COLUMNS

BODY_BYTES_MAX = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Pattern:
    """A destination to keep: a name that may hold wildcards, of one kind or of any."""

    kind: Kind | None
    path: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """What to read; `since` and `until` are in ms since the epoch, 0 for no bound."""

    directories: tuple[str, ...]
    table: str = "records"
    columns: tuple[str, ...] = DEFAULT_COLUMNS
    destinations: tuple[Pattern, ...] = ()
    since: int = 0
    until: int = 0
    body_bytes_max: int = BODY_BYTES_MAX
    skip_corrupt: bool = False


def is_asked_for(destination: Destination, patterns: tuple[Pattern, ...]) -> bool:
    """Tell whether one of *patterns* stands for *destination*; all are asked for without any."""
    return not patterns or any(
        pattern.kind in (None, destination.kind) and path_matches(pattern.path, destination.path)
        for pattern in patterns
    )
