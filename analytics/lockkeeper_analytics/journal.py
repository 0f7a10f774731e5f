"""A journal as the reports see it: a few data frames, each written once and read often."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lockkeeper_analytics.acknowledged import acknowledged_of
from lockkeeper_analytics.datasource import FORMAT
from lockkeeper_analytics.effects import RECORD_COLUMNS, effects_of
from lockkeeper_analytics.flight import events_of, lines_of, statistics_of
from lockkeeper_analytics.grouping import cell_seconds


@dataclass(frozen=True, slots=True)
class Journal:
    """Records as the data source gives them, and what was made of them (see each module)."""

    records: DataFrame
    effects: DataFrame
    acknowledged: DataFrame
    statistics: DataFrame
    events: DataFrame


def read_records(session: SparkSession, directories: list[str], **options: str | bool) -> DataFrame:
    """Return the records of *directories* with the columns that reports need."""
    reader = session.read.format(FORMAT).options(**options)
    return reader.option("columns", ",".join(RECORD_COLUMNS)).load(",".join(directories))


def journal_of(records: DataFrame) -> Journal:
    """Return the journal made of *records*; everything is computed when it is asked for."""
    lines, effects = lines_of(records), effects_of(records)
    return Journal(
        records, effects, acknowledged_of(effects), statistics_of(lines), events_of(lines)
    )


def settled(
    journal: Journal, folder: Path, tell: Callable[[str], None] = lambda _step: None
) -> Journal:
    """Return *journal* with its data frames written to Parquet under *folder* and read back.

    The records are written first, so that a running broker's journal is read only once. *tell*
    hears of each step.
    """
    session = journal.records.sparkSession
    records = _settle(session, journal.records, folder / "records")
    made = journal_of(records)
    tell("applying transactions")
    effects = _settle(session, made.effects, folder / "effects")
    tell("matching acknowledgements")
    return Journal(
        records,
        effects,
        _settle(session, acknowledged_of(effects), folder / "acknowledged"),
        _settle(session, made.statistics, folder / "statistics"),
        _settle(session, made.events, folder / "events"),
    )


def _settle(session: SparkSession, frame: DataFrame, path: Path) -> DataFrame:
    frame.write.mode("overwrite").parquet(str(path))
    return session.read.parquet(str(path))


def span_seconds(journal: Journal) -> int:
    """Return how long a cell of time is, in seconds, for all that *journal* tells of."""
    effects = journal.effects.agg(F.min("happened_at"), F.max("happened_at")).first()
    lines = journal.statistics.agg(F.min("at"), F.max("at")).first()
    return cell_seconds([*(effects or ()), *(lines or ())])
