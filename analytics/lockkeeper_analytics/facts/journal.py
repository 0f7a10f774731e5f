"""A journal as the reports see it: a few data frames, each written once and read often."""

import re
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pyarrow.parquet import read_metadata
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lockkeeper_analytics.facts.absent import (
    ANY_OF_THEM,
    LATER,
    LATER_ARRIVALS,
    absent_facts,
)
from lockkeeper_analytics.facts.frames import CountedFrames, Frames, quoted, read_often
from lockkeeper_analytics.facts.functions import register_functions
from lockkeeper_analytics.facts.tables import RECORDED, Source, frames_of, in_one_piece, listed
from lockkeeper_analytics.narrowing import (
    COUNTING,
    EVERYTHING,
    PRESENT,
    REPORTS,
    Narrowing,
    kept,
)
from lockkeeper_analytics.reading.beginnings import last_files
from lockkeeper_analytics.reading.pins import text_of
from lockkeeper_analytics.spark.pinning import pinned
from lockkeeper_analytics.spark.planned import planned
from lockkeeper_analytics.spark.questions import Question
from lockkeeper_analytics.tables.options import parse_options
from lockkeeper_analytics.texts import REPORT

AT_A_TIME = 3
"""So many jobs are given to Spark at once: it plans one while it carries out others."""

_GLOB_SIGNS = re.compile(r"[\\\[\]{}*?]")
RECORDS = "records"
"""The frame of all records, and where they are in a folder."""

RECORD_COLUMNS = (
    "directory",
    "file_id",
    "offset",
    "written_after",
    "written_before",
    "recorder",
    "stream_state",
    "record_bytes",
    "kind",
    "destination_kind",
    "destination",
    "message_id",
    "copy_of",
    "subscription",
    "transaction",
    "stored_at",
    "message_bytes",
    "redeliveries",
    "dead_letter_cause",
    "original_destination",
    "producer_id",
    "priority",
    "group_id",
    "consumer_id",
    "ack_type",
    "ack_cause",
    "retroactive",
    "broker_path",
)
"""The columns of the data source that facts and reports are made of."""


@dataclass(frozen=True)
class Journal:
    """Tables and views of a journal up to the bound `until` of *narrowing*, and of its *present*.

    They are made of *source*. The other bounds of *narrowing* choose what reports show. What they
    are made of is in the *folder*, if it was written somewhere.
    """

    source: Source
    frames: Frames
    present: Frames
    narrowing: Narrowing = EVERYTHING
    folder: Path | None = None

    def count(self) -> int:
        """Return how many records there are."""
        files = list((self.folder / RECORDS).glob("*.parquet")) if self.folder else []
        if not files:
            # They are elsewhere: on other machines, or in the file system that a Spark prefers.
            return int(self.present.frame(RECORDS).count())
        return sum(read_metadata(file).num_rows for file in files)

    def frame(self, name: str) -> DataFrame:
        """Return all rows of the table or view *name*."""
        return self._frames_of(name).frame(name)

    def report(self, name: str) -> DataFrame:
        """Return the rows of report *name* that are asked for."""
        return self.question(name).asked(self.frames.session)

    def question(self, name: str) -> Question:
        """Return what asks for the rows of report *name* that are to be shown."""
        view = name + REPORT
        text = kept(view, REPORTS[name], self.narrowing, quoted)
        if name in COUNTING and (self.narrowing.since or self.narrowing.destinations):
            return CountedFrames(self.frames, self.narrowing).question(text)
        return self._frames_of(view).question(text)

    def _frames_of(self, name: str) -> Frames:
        return self.present if name in PRESENT else self.frames


def read_journals(
    session: SparkSession,
    directories: Sequence[str],
    skip_corrupt: bool = False,
    is_pinned: bool = False,
    bodies: Mapping[str, str] | None = None,
) -> Source:
    """Return the records of *directories* with the columns that reports need.

    The directories are listed now, the records are read later; with *is_pinned* those that are
    there now. *bodies* are options of the data source for fields of bodies. Raises OptionError,
    NoJournalError, and what `pinned` raises.
    """
    there = listed(session, directories, skip_corrupt)
    options = {"corrupt": "skip" if skip_corrupt else "fail"}
    pins = pinned(session, directories) if is_pinned else None
    if pins is not None:
        options["pinned"] = text_of(pins)
    asked = {**options, "columns": ",".join(RECORD_COLUMNS), "path": ",".join(directories)}
    records = planned(session, parse_options(asked))
    return Source(records, there, directories, pins, {**options, **(bodies or {})})


def journal_of(
    source: Source, narrowing: Narrowing = EVERYTHING, is_small: bool = False
) -> Journal:
    """Return the journal made of all of *source*; everything is computed when it is asked for.

    *narrowing* tells what of it reports show. One that *is_small* is worked out in one piece.
    """
    register_functions(source.records.sparkSession)
    cut = read_often(name + REPORT for name in REPORTS)
    if is_small:
        source, cut = in_one_piece(source), cut | RECORDED.keys()
    frames = present = frames_of(source, cut)
    if narrowing.until:
        bounded = {**source.options, "until": str(narrowing.until)}
        then = source._replace(records=_until(source, narrowing.until), options=bounded)
        frames = frames_of(then, cut)
    return Journal(source, frames, present, narrowing)


def settled(
    source: Source,
    folder: Path | None,
    narrowing: Narrowing = EVERYTHING,
    at_a_time: int = AT_A_TIME,
    tell: Callable[[str], None] = lambda _step: None,
    is_small: bool = False,
) -> Journal:
    """Return the journal of *source*, what it is made of written to Parquet under *folder*.

    The records are written first, so that a running broker's journal is read only once. *folder*
    None: executors on other machines keep what they made on their own disks. Spark gets *at_a_time*
    jobs at once. *tell* hears of each step. Of one that *is_small* only the records are written.
    """
    records = _settle(source.records, folder, RECORDS)
    made = replace(journal_of(source._replace(records=records), narrowing, is_small), folder=folder)
    frames = made.frames
    (answer,) = frames.ask(ANY_OF_THEM).collect()
    frames.leave_out(absent_facts(answer))
    with ThreadPoolExecutor(at_a_time) as pool:

        def settle(*names: str) -> None:
            asked = {
                name: pool.submit(_settle, frames.planned(name), folder, name)
                for name in names
                if not frames.is_left_out(name)
            }
            frames.keep({name: each.result() for name, each in asked.items()})

        if not is_small:
            tell("applying transactions")
            # What is in a small file is broadcast: the records of transactions need no shuffle.
            settle("outcomes", "statistics", "events")
            settle("applied_operations", "transaction_files")
        tell("matching acknowledgements")
        cells = pool.submit(frames.frame("cells").collect)
        if not is_small:
            settle("message_lifetimes", "counted")
            ((later,),) = frames.ask(LATER).collect()
            frames.leave_out(set() if later else set(LATER_ARRIVALS))
            settle("acknowledged", "moves")
    (seconds,) = cells.result()[0]
    # As a constant it costs no job of each query.
    frames.keep({"cells": frames.session.sql(f"SELECT CAST({seconds} AS BIGINT) AS seconds")})
    return made


def _until(source: Source, milliseconds: int) -> DataFrame:
    """Return the records of *source* up to the first one that is known to be younger."""
    latest = F.timestamp_millis(F.lit(milliseconds))
    kept = F.col("written_after").isNull() | (F.col("written_after") <= latest)
    for directory, last in last_files(source.directories, milliseconds, source.pinned).items():
        kept &= (F.col("directory") != directory) | (F.col("file_id") <= last)
    return source.records.where(kept)


def _settle(frame: DataFrame, folder: Path | None, name: str) -> DataFrame:
    if folder is None:
        return _without_plan(frame.persist(StorageLevel.DISK_ONLY))
    path = str(folder / name)
    frame.write.mode("overwrite").parquet(path)
    # With a schema given, Spark need not look for one in the files. It reads patterns of paths.
    pattern = _GLOB_SIGNS.sub(r"\\\g<0>", path)
    return frame.sparkSession.read.schema(frame.schema).parquet(pattern)


def _without_plan(frame: DataFrame) -> DataFrame:
    """Return the rows of *frame* with no plan of how they come about.

    Plans of reports would have that of each frame within them, as often as they read it: one
    gigabyte is not enough for the first. The rows can be made again nevertheless.
    """
    session: Any = frame.sparkSession
    made = frame.select("*")._jdf.queryExecution().toRdd()
    bare = session._jsparkSession.internalCreateDataFrame(made, frame._jdf.schema(), False)
    return DataFrame(bare, session)
