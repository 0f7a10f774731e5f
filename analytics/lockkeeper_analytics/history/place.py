"""Place of one broker's records in a history: what an appending run asks of it."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import pyarrow as pa

from lockkeeper_analytics.errors import AnalyticsError
from lockkeeper_analytics.reading.kept import KeptFile

VERSION = "1"
"""Of the files' schema; columns may come behind the others without another one."""


class Step(NamedTuple):
    """Rows that are added at once: where in the journal they begin, and the rows of each day.

    The place is a data file and a byte in it. A day is written `2026-11-18`, or NO_DAY. *following*
    tells where the next step begins, as JSON has it.
    """

    begin: tuple[int, int]
    days: Mapping[str, pa.Table]
    following: Mapping[str, Any]


class Place(Protocol):
    """Keeps steps in order; of each it keeps all or nothing, whatever ends a run.

    Methods raise AnalyticsError.
    """

    def last(self) -> dict[str, Any] | None:
        """Return what the last step told of the next one; None: there is no step yet.

        What a run has left that was killed is put right first.
        """

    def add(self, step: Step) -> None:
        """Add a step, through to the disk."""

    def files(self) -> Sequence[KeptFile]:
        """Return the files of all steps."""


def check_version(place: str, version: str) -> None:
    """Raise AnalyticsError when *version* of the schema is not the one that is written here."""
    if version != VERSION:
        raise AnalyticsError(
            f"{place}: schema {version} is not {VERSION}, the one that this version of Lockkeeper "
            "writes; keep records in another folder"
        )
