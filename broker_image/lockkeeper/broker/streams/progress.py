"""Progress of a group in one partition, as far as this life of the broker has seen it."""

from dataclasses import dataclass


@dataclass(slots=True)
class Progress:
    """Last read of a partition by a group, and when the group's offset moved last.

    `reader` is the client id of whoever read, `asked_for` the offset that it asked for: it has in
    hand, or has consumed, what is before, from `began` on, where it read first. Times are ms of
    the steady clock; None is never.
    """

    reader: str = ""
    asked_for: int = 0
    began: int = 0
    read_at: int | None = None
    moved_at: int | None = None
