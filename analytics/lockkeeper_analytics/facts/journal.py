"""A journal as the reports see it: a few data frames, each written once and read often."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lockkeeper_analytics.facts.acknowledged import acknowledged_of
from lockkeeper_analytics.facts.clients import clients_of
from lockkeeper_analytics.facts.effects import RECORD_COLUMNS, effects_of
from lockkeeper_analytics.facts.flight import events_of, lines_of, statistics_of
from lockkeeper_analytics.facts.grouping import cell_seconds
from lockkeeper_analytics.facts.kept import kept
from lockkeeper_analytics.facts.lives import lives_of
from lockkeeper_analytics.facts.narrowing import EVERYTHING, FACTS, Narrowing
from lockkeeper_analytics.spark.datasource import FORMAT

AT_A_TIME = 3
"""So many jobs are given to Spark at once: it plans one while it carries out others."""


@dataclass(frozen=True)
class Journal:
    """Records as the data source gives them, and what was made of them (see each module).

    *records*, and all that was made of them, go up to the bound `until` of *narrowing*, *present*
    to the journal's end. Its other bounds choose what reports show: see `counting` and `Report`.
    *whole* is what a journal for `counting` was made of.
    """

    records: DataFrame
    effects: DataFrame
    acknowledged: DataFrame
    statistics: DataFrame
    events: DataFrame
    lives: DataFrame
    clients: DataFrame
    present: DataFrame
    narrowing: Narrowing = EVERYTHING
    whole: "Journal | None" = None

    @property
    def counting(self) -> "Journal":
        """The journal with only those facts that are counted from the bound `since` on."""
        names = ("effects", "acknowledged", "statistics", "lives")
        facts = {name: kept(getattr(self, name), FACTS[name], self.narrowing) for name in names}
        return replace(self, **facts, whole=self)

    @property
    def now(self) -> "Journal":
        """The journal as it stands at its end, whatever is asked for."""
        return journal_of(self.present) if self.narrowing.until else self

    @property
    def all_statistics(self) -> DataFrame:
        """The lines of statistics, also those from before the bound `since`."""
        return (self.whole or self).statistics

    @cached_property
    def cell_seconds(self) -> int:
        """Return how long a cell of time is, in seconds, for all that the journal tells of."""
        moments = self.effects.select(F.col("happened_at").alias("at"))
        told = moments.unionByName(self.statistics.select("at"))
        return cell_seconds(told.agg(F.min("at"), F.max("at")).collect()[0])


def read_records(session: SparkSession, directories: list[str], **options: str | bool) -> DataFrame:
    """Return the records of *directories* with the columns that reports need."""
    reader = session.read.format(FORMAT).options(**options)
    return reader.option("columns", ",".join(RECORD_COLUMNS)).load(",".join(directories))


def journal_of(present: DataFrame, narrowing: Narrowing = EVERYTHING) -> Journal:
    """Return the journal made of all records; everything is computed when it is asked for.

    *narrowing* tells what of it reports show.
    """
    records = _until(present, narrowing)
    lines, effects = lines_of(records), effects_of(records)
    return Journal(
        records,
        effects,
        acknowledged_of(effects),
        statistics_of(lines),
        events_of(lines),
        lives_of(effects),
        clients_of(records),
        present,
        narrowing,
    )


def settled(
    journal: Journal,
    folder: Path | None,
    at_a_time: int = AT_A_TIME,
    tell: Callable[[str], None] = lambda _step: None,
) -> Journal:
    """Return *journal* with its data frames written to Parquet under *folder* and read back.

    The records are written first, so that a running broker's journal is read only once. *folder*
    None: executors on other machines keep what they made on their own disks. Spark gets *at_a_time*
    jobs at once. *tell* hears of each step.
    """
    present = _settle(journal.present, folder, "records")
    made = journal_of(present, journal.narrowing)
    with ThreadPoolExecutor(at_a_time) as pool:

        def begin(frame: DataFrame, name: str) -> Future[DataFrame]:
            return pool.submit(_settle, frame, folder, name)

        tell("applying transactions")
        applied = begin(made.effects, "effects")
        statistics = begin(made.statistics, "statistics")
        events, clients = begin(made.events, "events"), begin(made.clients, "clients")
        effects = applied.result()
        tell("matching acknowledgements")
        acknowledged = begin(acknowledged_of(effects), "acknowledged")
        lives = begin(lives_of(effects), "lives")
        return Journal(
            made.records,
            effects,
            acknowledged.result(),
            statistics.result(),
            events.result(),
            lives.result(),
            clients.result(),
            present,
            journal.narrowing,
        )


def _until(records: DataFrame, narrowing: Narrowing) -> DataFrame:
    """Return the *records* that are not known to be younger than what is asked for."""
    if not narrowing.until:
        return records
    latest = F.timestamp_millis(F.lit(narrowing.until))
    return records.where(F.col("written_after").isNull() | (F.col("written_after") <= latest))


def _settle(frame: DataFrame, folder: Path | None, name: str) -> DataFrame:
    if folder is None:
        return frame.persist(StorageLevel.DISK_ONLY)
    path = str(folder / name)
    frame.write.mode("overwrite").parquet(path)
    # With a schema given, Spark need not look for one in the files.
    return frame.sparkSession.read.schema(frame.schema).parquet(path)
