"""Data frames of Spark for every table and report of journals, and for the life of a message.

    spark = SparkSession.builder.getOrCreate()
    table(spark, "messages", "data/kahadb").groupBy("outcome").count().show()
    report(spark, "latency", "north=data/north", "south=data/south", since="24h").show()
    trace(spark, "order-4711", "data/kahadb").show()

Directories are named as for the data source; `NAME=DIR` names the rows' `broker`. Functions raise
OptionError for a wrong name or option, and NoJournalError for a directory without a journal.
"""

from collections.abc import Mapping
from datetime import UTC, datetime

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from lockkeeper_analytics.errors import OptionError
from lockkeeper_analytics.facts.frames import kept_frame, quoted
from lockkeeper_analytics.facts.journal import journal_of, read_journals
from lockkeeper_analytics.facts.shuffled import read_table
from lockkeeper_analytics.narrowing import TABLES as TOLD_TABLES
from lockkeeper_analytics.narrowing import Narrowing
from lockkeeper_analytics.reading.moments import moment
from lockkeeper_analytics.reports import REPORTS
from lockkeeper_analytics.spark.datasource import FORMAT
from lockkeeper_analytics.spark.session import register
from lockkeeper_analytics.tables import TABLES
from lockkeeper_analytics.tables.options import parse_options
from lockkeeper_analytics.trace.steps import FACTS, PARTS, part_text
from lockkeeper_analytics.trace.steps import TABLES as TABLES_READ

TABLE_NAMES = tuple(TABLES)
REPORT_NAMES = tuple(REPORTS)
SCHEMAS: Mapping[str, StructType] = {
    name: from_arrow_schema(each.arrow(each.default_columns)) for name, each in TABLES.items()
}
"""The columns of every table by its name, for programs that are checked before they read."""


def table(session: SparkSession, name: str, *directories: str, **options: str) -> DataFrame:
    """Return the table *name*, whose work all cores share; rows come in no order.

    *options* are those of the data source: `columns`, `destination`, `since`, `until`, `corrupt`.
    Times may be how long ago they were: `24h`.
    """
    if name not in TABLES:
        raise OptionError(f"no table {name!r} (known: {', '.join(TABLE_NAMES)})")
    now = datetime.now(UTC)
    asked = {
        each: moment(value, now) if each in ("since", "until") else value
        for each, value in options.items()
    }
    if name in TOLD_TABLES:
        return read_table(session, name, directories, **asked)
    register(session)
    reader = session.read.format(FORMAT).options(**{**asked, "table": name})
    return reader.load(",".join(directories))


def report(
    session: SparkSession,
    name: str,
    *directories: str,
    destination: str = "",
    since: str = "",
    until: str = "",
    corrupt: str = "fail",
) -> DataFrame:
    """Return the rows of the report *name*, narrowed as `lockkeeper analyze` narrows them."""
    if name not in REPORTS:
        raise OptionError(f"no report {name!r} (known: {', '.join(REPORT_NAMES)})")
    now = datetime.now(UTC)
    bounds = {"since": moment(since, now), "until": moment(until, now)}
    path = ",".join(directories)
    asked = parse_options({"path": path, "destination": destination, "corrupt": corrupt, **bounds})
    narrowing = Narrowing(asked.destinations, asked.since, asked.until)
    source = read_journals(session, asked.directories, corrupt == "skip")
    return journal_of(source, narrowing).report(name)


def trace(session: SparkSession, identifier: str, *directories: str) -> DataFrame:
    """Return the steps of messages with *identifier*, a message id or a correlation id, in order.

    The columns are those of `lockkeeper trace --format json`.
    """
    literal = quoted(identifier).replace("{", "{{").replace("}", "}}")
    named = {each: table(session, each, *directories) for each in TABLES_READ}
    journal = journal_of(read_journals(session, directories))
    named |= {each: journal.frame(each) for each in FACTS}
    for part in PARTS:
        # Else each that reads it would work it out anew, from the journals.
        named[part] = kept_frame(session.sql(part_text(part, literal), **named))
    return session.sql(part_text("steps", literal), **named)
