"""Journals as the reports see them, made of what the data source reads without Spark."""

from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from lockkeeper_analytics.facts.journal import RECORD_COLUMNS, Journal, journal_of
from lockkeeper_analytics.facts.tables import Source, listed
from lockkeeper_analytics.tables import TABLES
from lockkeeper_analytics.tables.options import parse_options


def journal_in(spark: SparkSession, *directories: Path) -> Journal:
    """Return the journal of all *directories* together."""
    names = list(map(str, directories))
    there = listed(spark, names)
    options = {"path": ",".join(names), "columns": ",".join(RECORD_COLUMNS)}
    batches = list(TABLES["records"].batches(parse_options(options)))
    records = spark.createDataFrame(pa.Table.from_batches(batches))
    return journal_of(Source(records, there, names))


def dicts(frame: DataFrame) -> list[dict[str, Any]]:
    """Return the rows of *frame*."""
    return [row.asDict(recursive=True) for row in frame.collect()]
