"""Failures of Spark, told to people: what our own reader said, or what became of its Java."""

import re
from pathlib import Path

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

_CAUSE = "Caused by: "
_OUT_OF_HEAP = re.compile(r"java\.lang\.OutOfMemoryError: (Java heap space|GC overhead)")


def reason_of(error: Exception, log: Path, memory: str) -> str:
    """Return what became of a run: the line of Spark's *error* that names the cause.

    Where its Java has ended, its *log* says why, and whether *memory* was too little.
    """
    if isinstance(error, PySparkException | Py4JJavaError):
        return _cause_in(_text_of(error)) or _end_of_java(log, memory)
    return _end_of_java(log, memory)


def _text_of(error: Exception) -> str:
    """Return the text of *error*, empty where only a Java that has ended could tell it."""
    try:
        return str(error)
    except Exception:
        return ""


def _cause_in(text: str) -> str:
    """Return the line that names the cause: what our own reader raised.

    Of what went wrong in Java alone, the cause of all causes.
    """
    ours = ("lockkeeper_analytics.errors.", "lockkeeper.journal.errors.", "OSError", "MemoryError")
    lines = [line.strip() for line in text.splitlines()]
    for line in reversed(lines):
        if line.startswith(ours):
            return line.partition(": ")[2] or line
    causes = [line.removeprefix(_CAUSE) for line in lines if line.startswith(_CAUSE)]
    return next((line for line in [*causes[-1:], *lines] if line), "")


def _end_of_java(log: Path, memory: str) -> str:
    said = log.read_text("utf-8", "replace") if log.exists() else ""
    if _OUT_OF_HEAP.search(said):
        return f"Spark ran out of memory with a heap of {memory}: give it more with --memory"
    where = f"; {log} has what it said" if said else ""
    return f"Spark has ended before the reports were written{where}"
