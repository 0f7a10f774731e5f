"""Changes from a former run to this one: figure by figure, and which of them can be compared."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from lockkeeper_analytics.comparison.runs import Run

ALIKE = 0.01
"""Times that differ in length by no more than this share count as equally long."""
_HOUR = 3_600_000


class Kind(StrEnum):
    """What a figure is."""

    OVER_TIME = "over time"
    """A count that grows with the time that a run is of."""
    STATE = "state"
    """A count of what there is at the end."""
    PER_SECOND = "per second"
    DURATION = "ms"


@dataclass(frozen=True, slots=True)
class Figure:
    """A headline figure: its name, its heading, and how a run tells it.

    *is_bad*: more of it is worse; of other figures nobody can say.
    """

    name: str
    heading: str
    kind: Kind
    of: Callable[[Run], float | None]
    is_bad: bool = False


@dataclass(frozen=True, slots=True)
class Change:
    """A figure of a former run and of this one; `rates` are both for an hour, where they count."""

    figure: Figure
    former: float | None
    now: float | None
    rates: tuple[float, float] | None
    is_comparable: bool

    @property
    def compared(self) -> tuple[float, float] | None:
        """The two values that are compared; None where nothing can be said."""
        if not self.is_comparable or self.former is None or self.now is None:
            return None
        return self.rates or (self.former, self.now)

    @property
    def difference(self) -> float | None:
        """How much more it is now, for an hour where `rates` are there."""
        return None if self.compared is None else self.compared[1] - self.compared[0]

    @property
    def share(self) -> float | None:
        """The difference as a share of the former value; None where that is nothing."""
        if self.compared is None or self.difference is None or not self.compared[0]:
            return None
        return self.difference / self.compared[0]

    @property
    def direction(self) -> str | None:
        """`more`, `less` or `same`; None where nothing can be said."""
        if self.difference is None:
            return None
        return "same" if not self.difference else "more" if self.difference > 0 else "less"

    @property
    def is_worse(self) -> bool | None:
        """Whether it is worse now, or better; None where nobody can say."""
        if not self.figure.is_bad or self.direction in (None, "same"):
            return None
        return self.direction == "more"


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two runs, and the change of each figure."""

    former: Run
    now: Run
    changes: tuple[Change, ...]

    @property
    def is_per_hour(self) -> bool:
        """Whether counts over time are compared for an hour."""
        return any(change.rates is not None for change in self.changes)

    @property
    def is_timeless(self) -> bool:
        """Whether of one run nothing tells the time that its counts are of."""
        return self.former.milliseconds is None or self.now.milliseconds is None

    @property
    def shared_milliseconds(self) -> float | None:
        """How long the time is that both are of; None where one is not known."""
        if self.is_timeless:
            return None
        begins = max(_known(self.former.begins), _known(self.now.begins))
        ends = min(_known(self.former.ends), _known(self.now.ends))
        return max(0.0, (ends - begins).total_seconds() * 1000)

    def change_of(self, name: str) -> Change:
        """Return the change of the figure *name*."""
        return next(change for change in self.changes if change.figure.name == name)


def compare(former: Run, now: Run) -> Comparison:
    """Return what changed from *former* to *now*.

    Where the times that they are of are not equally long, counts over time are compared for an
    hour; where nothing tells such a time, they are not compared.
    """
    return Comparison(former, now, tuple(_change(each, former, now) for each in FIGURES))


def _change(figure: Figure, former: Run, now: Run) -> Change:
    before, after = figure.of(former), figure.of(now)
    if figure.kind is not Kind.OVER_TIME:
        return Change(figure, before, after, None, True)
    was, lasted = former.milliseconds, now.milliseconds
    if was is None or lasted is None:
        return Change(figure, before, after, None, False)
    if abs(was - lasted) <= ALIKE * max(was, lasted) or before is None or after is None:
        return Change(figure, before, after, None, True)
    rates = (before * _HOUR / was, after * _HOUR / lasted)
    return Change(figure, before, after, rates, True)


def _named(name: str) -> Callable[[Run], float | None]:
    return lambda run: run.figures.get(name)


def _waiting(run: Run) -> float | None:
    """Return what waits, dead letters among it."""
    others, letters = run.figures.get("waiting"), run.figures.get("waiting_dead_letters")
    return None if others is None or letters is None else float(others + letters)


def _oldest(run: Run) -> float | None:
    """Return how long the oldest message that is no dead letter had waited at the end, in ms."""
    since = run.figures.get("oldest_waiting_at")
    if since is None or run.ends is None:
        return None
    return max(0.0, (run.ends - datetime.fromisoformat(since)).total_seconds() * 1000)


def _known(moment: datetime | None) -> datetime:
    assert moment is not None
    return moment


FIGURES = (
    Figure("sent", "Sent", Kind.OVER_TIME, _named("sent")),
    Figure("peak", "Sent, at the most", Kind.PER_SECOND, _named("peak_per_second")),
    Figure("acknowledged", "Acknowledged", Kind.OVER_TIME, _named("acknowledged")),
    Figure("dead_lettered", "Dead letters", Kind.OVER_TIME, _named("dead_lettered"), True),
    Figure("all_waiting", "Still waiting", Kind.STATE, _waiting, True),
    Figure("letters", "Dead letters among them", Kind.STATE, _named("waiting_dead_letters"), True),
    Figure("oldest", "Age of the oldest other", Kind.DURATION, _oldest, True),
    Figure("in_doubt", "In doubt", Kind.STATE, _named("in_doubt"), True),
    Figure("redelivered", "Redelivered", Kind.OVER_TIME, _named("redelivered"), True),
    Figure("takeovers", "Take-overs", Kind.OVER_TIME, _named("takeovers"), True),
    Figure("silence", "Longest silence", Kind.DURATION, _named("longest_silence_ms"), True),
)
"""The headline figures, in the page's order."""
