"""Runs by their summaries: the figures, and the time and places that they are of."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from lockkeeper_analytics.errors import AnalyticsError, NoJournalError
from lockkeeper_analytics.reading.storage import beside, name_of, open_file

SUMMARY = "report.json"
BYTES_MAX = 16 << 20
"""A summary is longer only if it is none."""


@dataclass(frozen=True, slots=True)
class Run:
    """The figures of a run by their names in `report.json`; times in UTC, None: not known.

    Its counts are of the time from *begins* to *ends*.
    """

    made_at: datetime
    directories: tuple[str, ...]
    destination: str
    begins: datetime | None
    ends: datetime | None
    figures: Mapping[str, Any]

    @property
    def milliseconds(self) -> float | None:
        """How long the time of its counts is; None where it is not known, or is none."""
        if self.begins is None or self.ends is None or self.begins >= self.ends:
            return None
        return (self.ends - self.begins).total_seconds() * 1000


def run_of(summary: Mapping[str, Any]) -> Run | None:
    """Return the run that a summary, as JSON has it, tells of; None where it has no figures.

    Raises KeyError, TypeError or ValueError for what is no summary.
    """
    if summary["figures"] is None:
        return None
    return Run(
        made_at=datetime.fromisoformat(summary["made_at"]),
        directories=tuple(summary["directories"]),
        destination=summary["options"]["destination"],
        begins=_moment(summary["counted_from"]),
        ends=_moment(summary["last_at"]),
        figures=dict(summary["figures"]),
    )


def given_run(place: str) -> Run:
    """Return the run whose folder, URL or `report.json` is at *place*. Raises AnalyticsError."""
    path = place if name_of(place) == SUMMARY else beside(place, SUMMARY)
    try:
        run = run_of(_summary_at(path))
    except (OSError, NoJournalError) as error:
        reason = error.strerror if isinstance(error, OSError) else None
        raise AnalyticsError(f"--beside: {path}: {reason or error}") from error
    except (KeyError, TypeError, ValueError) as error:
        raise AnalyticsError(f"--beside: {path} is no summary of a report") from error
    if run is None:
        raise AnalyticsError(
            f"--beside: {path} has no figures: its run left out reports that they are told from"
        )
    return run


def found_run(place: str, directories: tuple[str, ...], destination: str) -> Run | None:
    """Return the run whose results are in the folder or URL *place*, if it is of the same.

    It was not asked for: what else may be there is no error, and None.
    """
    try:
        run = given_run(place)
    except AnalyticsError:
        return None
    return run if (run.directories, run.destination) == (directories, destination) else None


def _summary_at(path: str) -> Any:
    with open_file(path) as file:
        return json.loads(file.read(BYTES_MAX))


def _moment(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
