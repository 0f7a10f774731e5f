"""Views as Spark runs them: their texts are parts of a query over frames.

Frames are tables, and views that are kept since several others read them. A name stands for one
frame, which is made when somebody asks for it, in any thread.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Set
from threading import Lock

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession

from lockkeeper_analytics.facts.absent import empty_like
from lockkeeper_analytics.narrowing import TABLES, Narrowing, counted, counts_from_whole
from lockkeeper_analytics.spark.questions import Question
from lockkeeper_analytics.texts import names_read, times_read, view_texts, views_behind

WHOLE = "whole_"
"""Before the name of a fact: all of its rows."""


class Frames:
    """The tables of a journal and the views over them, by their names."""

    def __init__(
        self,
        session: SparkSession,
        known: Mapping[str, DataFrame],
        cut: Set[str] = frozenset(),
        later: Mapping[str, Callable[[], DataFrame]] | None = None,
    ) -> None:
        """Know some frames; those *cut* leave their plans behind, for what several others read.

        Frames of *later* are made when somebody asks for them: nobody may.
        """
        self.session = session
        self._later = later or {}
        self._known = dict(known)
        self._cut = cut
        self._absent: set[str] = set()
        self._lock = Lock()
        self._locks: dict[str, Lock] = {}

    def frame(self, name: str) -> DataFrame:
        """Return the table or view *name*, which is made once, whoever else asks for it."""
        with self._lock:
            own = self._locks.setdefault(name, Lock())
        # Views are read by those behind them alone, so that nobody waits for whom he lets wait.
        with own:
            if name not in self._known:
                self._known[name] = self._made(name)
            return self._known[name]

    def planned(self, name: str) -> DataFrame:
        """Return the table or view *name* with its plan, for somebody who writes its rows."""
        return self._known[name] if name in self._known else self.ask(self.text_of(name))

    def leave_out(self, names: Set[str]) -> None:
        """Let tables and views *names*, of which no row is to be made, be empty."""
        self._absent |= names
        self._known.update(
            {name: empty_like(self._known[name]) for name in names & self._known.keys()}
        )

    def is_left_out(self, name: str) -> bool:
        """Tell whether the table or view *name* is known to be empty."""
        return name in self._absent

    def keep(self, frames: Mapping[str, DataFrame]) -> None:
        """Let *frames*, which were written somewhere, stand for what they are named."""
        self._known.update(frames)

    def ask(self, text: str) -> DataFrame:
        """Return the answer to *text*, which reads tables and views."""
        return self.question(text).asked(self.session)

    def question(self, text: str) -> Question:
        """Return *text* with the texts of the views behind it, and the frames that these read."""
        views: dict[str, str] = {}
        frames: dict[str, DataFrame] = {}
        self._gather(text, views, frames)
        # One frame has one name, in whichever questions.
        keys = {name: f"{name}_{id(frame):x}" for name, frame in frames.items()}
        heads = [f"{name} AS (SELECT * FROM {{{key}}})" for name, key in keys.items()]
        heads += [f"{name} AS (\n{_escaped(view)}\n)" for name, view in views.items()]
        body = f"WITH {', '.join(heads)}\nSELECT * FROM (\n{_escaped(text)}\n)"
        return Question(body, {keys[name]: frame for name, frame in frames.items()})

    def is_frame(self, name: str) -> bool:
        """Tell whether *name* is a frame, and not a part of the queries that read it."""
        return any(name in each for each in (self._known, self._cut, self._later, self._absent))

    def text_of(self, name: str) -> str:
        """Return the SQL of the view *name*."""
        text = view_texts()[name]
        # Sorting a table of all messages is for those who want it.
        return text.rpartition("\nORDER BY")[0] if name in TABLES else text

    def _gather(self, text: str, views: dict[str, str], frames: dict[str, DataFrame]) -> None:
        """Add what *text* reads, each view behind what it reads itself."""
        for name in sorted(names_read(text) - views.keys()):
            if self.is_frame(name):
                frames[name] = self.frame(name)
            elif name in view_texts():
                view = self.text_of(name)
                self._gather(view, views, frames)
                views[name] = view

    def _made(self, name: str) -> DataFrame:
        if name in self._later:
            return self._later[name]()
        frame = self.planned(name)
        if name in self._absent:
            return empty_like(frame)
        return kept_frame(frame) if name in self._cut else frame


class CountedFrames(Frames):
    """The facts that are counted when a run is narrowed, and what is made of them."""

    def __init__(self, whole: Frames, narrowing: Narrowing) -> None:
        super().__init__(whole.session, {})
        self._whole = whole
        self._narrowing = narrowing

    def is_frame(self, name: str) -> bool:
        """Tell whether *name* has all of its rows."""
        is_there = self._whole.is_frame(name) or name in view_texts()
        return name.startswith(WHOLE) or (is_there and counts_from_whole(name))

    def text_of(self, name: str) -> str:
        """Return the SQL of the view *name* over facts that are counted."""
        return counted(name, super().text_of(name), WHOLE + name, self._narrowing, quoted)

    def _made(self, name: str) -> DataFrame:
        return self._whole.frame(name.removeprefix(WHOLE))


def kept_frame(frame: DataFrame) -> DataFrame:
    """Return *frame*, worked out once when it is first read, without its plan."""
    return frame.localCheckpoint(eager=False, storageLevel=StorageLevel.DISK_ONLY)


def read_often(names: Iterable[str]) -> set[str]:
    """Return the facts behind the views *names* that several views read: plans grow with each.

    `placed` is no more than a column of the records.
    """
    views = views_behind(set(names))
    read = Counter(each for text in views.values() for each in times_read(text))
    return {each for each in views if read[each] > 1 and each != "placed"}


def quoted(text: str) -> str:
    """Return *text* as a literal of Spark's SQL, where backslashes begin escapes."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _escaped(text: str) -> str:
    """Return *text* without names in braces."""
    return text.replace("{", "{{").replace("}", "}}")
