"""Questions: SQL over frames, several of which Spark answers as one query.

A query is gone through as a whole for each step that is made of it. So a question stays text until
it is asked, and what is asked together is one text.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession


class Question(NamedTuple):
    """SQL in which a name in braces stands for one of *frames*."""

    text: str
    frames: Mapping[str, DataFrame]

    def asked(self, session: SparkSession) -> DataFrame:
        """Return the frame that answers it."""
        return session.sql(self.text, **self.frames)


def answers(
    session: SparkSession, questions: Mapping[str, Question], rows_max: int
) -> dict[str, pa.Table]:
    """Return at most *rows_max* rows that answer each question, which is known by its name.

    One query reads once what several of them read: each has a column, whose values are lists of
    one row; in the rows of others it is null.
    """
    parts = [
        f"(SELECT {_columns(name, questions)} FROM (\n{question.text}\n) LIMIT {rows_max})"
        for name, question in questions.items()
    ]
    frames = {key: each for question in questions.values() for key, each in question.frames.items()}
    found = Question("\nUNION ALL\n".join(parts), frames).asked(session).toArrow()
    return {
        name: pa.Table.from_struct_array(pc.list_flatten(column))
        for name, column in zip(questions, found.columns, strict=True)
    }


def _columns(name: str, names: Iterable[str]) -> str:
    return ", ".join("array(struct(*))" if each == name else "NULL" for each in names)
