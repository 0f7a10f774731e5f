"""Tables that Spark tells from all records of journals, shuffled by message instead of replayed."""

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lockkeeper_analytics.errors import OptionError
from lockkeeper_analytics.facts.frames import quoted, read_often
from lockkeeper_analytics.facts.functions import register_functions
from lockkeeper_analytics.facts.tables import Source, frames_of, listed
from lockkeeper_analytics.narrowing import PRESENT, Narrowing, kept
from lockkeeper_analytics.narrowing import TABLES as RULES
from lockkeeper_analytics.reading.schema import COLUMNS, DEFAULT_COLUMNS
from lockkeeper_analytics.spark.planned import planned
from lockkeeper_analytics.tables.derived import columns_behind
from lockkeeper_analytics.tables.options import parse_options

_LINES = ("directory", "file_id", "offset", "recorder")


def read_table(
    session: SparkSession, name: str, directories: Sequence[str], **options: str
) -> DataFrame:
    """Return the table *name* of the journals in *directories*, whose work all cores share.

    The rows are those of the data source, in no order, with its options `columns`, `destination`,
    `since`, `until`, `corrupt`. There a directory is one partition, which one worker tells from its
    first record on; here records are shuffled by message. Raises OptionError, NoJournalError.
    """
    if name not in RULES:
        raise OptionError(f"table {name!r} is none of {', '.join(RULES)}: read it with spark.read")
    path = ",".join(directories)
    asked = parse_options({**options, "path": path, "table": name})
    columns = columns_behind(name, asked.columns)
    register_functions(session)
    there = listed(session, directories, asked.skip_corrupt)
    bounds = ("corrupt",) if name in PRESENT else ("corrupt", "until")
    whole = {"path": path, "columns": ",".join((*columns, *_more(columns)))}
    whole |= {each: options[each] for each in bounds if each in options}
    records = planned(session, parse_options(whole))
    absent = {
        each: F.lit(None).cast(COLUMNS[each].ddl)
        for each in DEFAULT_COLUMNS
        if each not in records.columns
    }
    frames = frames_of(Source(records.withColumns(absent), there, directories), read_often({name}))
    narrowing = Narrowing(asked.destinations, asked.since)
    told = frames.ask(kept(name, RULES[name], narrowing, quoted))
    return told.select(*asked.columns)


def _more(columns: Sequence[str]) -> list[str]:
    return [each for each in _LINES if each not in columns]
