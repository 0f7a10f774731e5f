"""Views as data frames: Spark runs the text of a view over the frames that it reads.

A name stands for one frame, which is made when somebody asks for it, in any thread.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Set
from threading import Lock

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession

from lockkeeper_analytics.narrowing import TABLES, Narrowing, counted, counts_from_whole
from lockkeeper_analytics.texts import names_read, times_read, view_texts, views_behind

WHOLE_ROWS = "whole_rows"

SMALL = ("present_files", "file_pins", "file_links", "kept_files")
"""Views with few rows that one query reads several times: these are fetched once."""


class Frames:
    """The tables of a journal and the views over them, by their names."""

    def __init__(
        self, session: SparkSession, known: Mapping[str, DataFrame], cut: Set[str] = frozenset()
    ) -> None:
        """Know some frames; those *cut* leave their plans behind, for what several others read."""
        self.session = session
        self._known = dict(known)
        self._cut = cut
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
        if name in self._known:
            return self._known[name]
        text = view_texts()[name]
        # Sorting a table of all messages is for those who want it.
        return self.ask(text.rpartition("\nORDER BY")[0] if name in TABLES else text)

    def keep(self, frames: Mapping[str, DataFrame]) -> None:
        """Let *frames*, which were written somewhere, stand for what they are named."""
        self._known.update(frames)

    def ask(self, text: str, **others: DataFrame) -> DataFrame:
        """Return the answer to *text*, which reads tables and views, and *others* by name."""
        frames = others | {name: self.frame(name) for name in self._there(names_read(text))}
        heads = ", ".join(f"{name} AS (SELECT * FROM {{{name}}})" for name in sorted(frames))
        body = text.replace("{", "{{").replace("}", "}}")
        return self.session.sql(f"WITH {heads} SELECT * FROM (\n{body}\n)", **frames)

    def _there(self, names: Iterable[str]) -> set[str]:
        return {name for name in names if name in self._known or name in view_texts()}

    def _made(self, name: str) -> DataFrame:
        frame = self.planned(name)
        if name in self._cut:
            return frame.localCheckpoint(eager=False, storageLevel=StorageLevel.DISK_ONLY)
        return self.session.createDataFrame(frame.toArrow()) if name in SMALL else frame


class CountedFrames(Frames):
    """The facts that are counted when a run is narrowed, and what is made of them."""

    def __init__(self, whole: Frames, narrowing: Narrowing) -> None:
        super().__init__(whole.session, {})
        self._whole = whole
        self._narrowing = narrowing

    def _there(self, names: Iterable[str]) -> set[str]:
        return self._whole._there(names)

    def _made(self, name: str) -> DataFrame:
        if counts_from_whole(name):
            return self._whole.frame(name)
        text = counted(name, view_texts()[name], WHOLE_ROWS, self._narrowing, quoted)
        if WHOLE_ROWS in names_read(text):
            return self.ask(text, **{WHOLE_ROWS: self._whole.frame(name)})
        return self.ask(text)


def read_often(names: Iterable[str]) -> set[str]:
    """Return the facts behind the views *names* that several views read: plans grow with each.

    Those of SMALL are fetched anyway, and `placed` is no more than a column of the records.
    """
    views = views_behind(set(names))
    read = Counter(each for text in views.values() for each in times_read(text))
    return {each for each in views if read[each] > 1 and each not in (*SMALL, "placed")}


def quoted(text: str) -> str:
    """Return *text* as a literal of Spark's SQL, where backslashes begin escapes."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
