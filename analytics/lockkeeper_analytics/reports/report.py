"""Reports: a question in SQL, and how the rows of its answer are shown.

Everything that is said of one report stands in its own two files: NAME.sql asks, NAME.py says in
`REPORT` how the answer is shown; which rows of it a narrowed run shows, in `facts/narrowing.py`.
The page, the job and the tests know reports only by this.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from lockkeeper_analytics.facts.grouping import DESTINATION
from lockkeeper_analytics.texts import REPORT, view_texts

Row = dict[str, Any]


class Unit(StrEnum):
    """How the values of a column are written for people."""

    TEXT = "text"
    CODE = "code"
    """An id; long ones are cut short, and whole in their hint."""
    CAUSE = "cause"
    """A sentence of somebody else's, cut short where it is long."""
    BADGE = "badge"
    """A word such as `slow`, on a ground of its own colour: reports choose from TONES."""
    FLAG = "flag"
    """Yes, or nothing."""
    LIST = "list"
    COUNT = "count"
    DECIMAL = "decimal"
    SHARE = "share"
    """A share of 1, in percent."""
    BYTES = "bytes"
    MILLISECONDS = "ms"
    TIME = "time"
    DESTINATION = "destination"
    """Of a column NAME with NAME_kind beside it, and `subscription` where the row has one."""
    RANGE = "range"
    """A line on a logarithmic scale in ms, from the column to `ends`, which are two columns."""


class Tone(StrEnum):
    """What a colour says."""

    CAME = "in"
    LEFT = "out"
    BAD = "bad"
    WARM = "warm"
    MIDDLE = "p50"
    HIGH = "p99"
    FAINT = "gone"


TONES = {"ok": Tone.LEFT, "slow": Tone.WARM, "stuck": Tone.BAD}
"""The words of badges that have a colour; others are faint."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the page's table: which one of the frame, under what heading, how written.

    *bar* draws a bar beside each figure, as long as its share of the highest. *bounds* names two
    columns between which the value certainly lies.
    """

    name: str
    heading: str
    unit: Unit = Unit.TEXT
    bar: Tone | None = None
    bounds: tuple[str, str] | None = None
    ends: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Series:
    """The values of one column in a plot; *floor* is the column down to which a line is shaded."""

    column: str
    name: str
    tone: Tone
    floor: str | None = None


@dataclass(frozen=True, slots=True)
class Bars:
    """A bar for each row, of stacked values; `upright` where rows are steps of a scale.

    *names* are the columns that tell the rows apart; a destination with its kind is one name.
    *axis* says what the values are, *steps* what the scale is.
    """

    names: tuple[str, ...]
    values: tuple[Series, ...]
    axis: str
    unit: Unit = Unit.COUNT
    upright: bool = False
    steps: str = ""


@dataclass(frozen=True, slots=True)
class Lines:
    """Values over cells of time that begin at `time` and last `seconds`, both columns of the row.

    *each* are the columns that tell apart what has lines of its own, to choose from. *together*
    says what all of them have in a cell: the `sum` of their values, the `max`, or nothing to see;
    *all_of* is what all of them are called.
    *is_rate*: the values are counts of a cell, shown for a second. *axis* says what the values are.
    """

    values: tuple[Series, ...]
    axis: str
    each: tuple[str, ...] = DESTINATION
    unit: Unit = Unit.COUNT
    together: str = ""
    is_rate: bool = False
    logarithmic: bool = False
    all_of: str = "All destinations"


@dataclass(frozen=True, slots=True)
class Heat:
    """A field for each row, the darker the higher its *value*; in the order of the rows.

    *axis* says what the values are, *across_axis* and *down_axis* what is across and down.
    """

    across: str
    down: tuple[str, ...]
    value: str
    axis: str
    across_axis: str
    down_axis: str
    unit: Unit = Unit.COUNT


Plot = Bars | Lines | Heat


@dataclass(frozen=True, slots=True)
class Report:
    """A question to a journal in words, and how the answer of its SQL is shown.

    *name* is that of its files, *question* one sentence, *nothing* what is said without rows.
    *shown* picks the rows for the page, *note* tells how to read them. *calm* says in a sentence
    that rows tell of no trouble, or nothing where they do. *messages* is the condition by which the
    table `messages` has those behind a row: `{column}` stands for the row's value, `{~column}` for
    a pattern of texts like it. *is_retried*: rows are of dead letters, which can be sent back.
    *is_optional*: it is made only if it is asked for.
    """

    name: str
    title: str
    question: str
    columns: tuple[Column, ...]
    plots: tuple[Plot, ...]
    nothing: str
    shown: Callable[[list[Row]], list[Row]] = list
    note: str = ""
    calm: Callable[[list[Row]], str] | None = None
    messages: str = ""
    is_retried: bool = False
    is_optional: bool = False

    @property
    def has_lines(self) -> bool:
        """Whether its rows are cells of time."""
        return any(isinstance(plot, Lines) for plot in self.plots)

    @property
    def view(self) -> str:
        """The name of the view that answers it."""
        return self.name + REPORT

    @property
    def sql(self) -> str:
        """The question in SQL."""
        return view_texts()[self.view]
