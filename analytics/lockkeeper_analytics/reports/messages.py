"""Messages behind a row of a report, as conditions on the table `messages`; rows without trouble.

`{column}` stands for the value of the row, `{~column}` for a pattern of texts like it.
"""

from collections.abc import Callable

from lockkeeper_analytics.reports.report import Row

OF_DESTINATION = "destination_kind = {destination_kind} AND destination = {destination}"

OF_CELL = (
    f"{OF_DESTINATION} AND stored_at < {{time}} + {{seconds}} * INTERVAL '1' SECOND "
    "AND coalesce(ended_latest, {time}) >= {time}"
)
"""Those that were there in a cell of time: they came, left or waited."""

WAITING = (
    f"{OF_DESTINATION} AND outcome IN ('pending', 'in_doubt') "
    "AND ({subscription} IS NULL OR list_contains(waiting_for, {subscription}))"
)

OF_CAUSE = (
    "destination = {dead_letter_queue} "
    "AND original_destination = {origin_kind} || '://' || {origin} "
    "AND dead_letter_cause LIKE {~cause} ESCAPE '^'"
)
"""Dead letters of a cause that came from one destination, wherever they are by now."""


def verdicts(calm: str) -> Callable[[list[Row]], str]:
    """Return what says *calm* of rows of which no verdict is a trouble."""
    return lambda rows: "" if any(row["verdict"] in ("slow", "stuck") for row in rows) else calm
