"""Functions that the texts of views call and Spark does not have.

DuckDB's are in `sql/dialect.sql`, beside those that it calls by another name than Spark.
"""

from collections.abc import Sequence

from pyspark.sql import SparkSession

from lockkeeper_analytics.packing import spark_structs

SEVERAL = -1
"""Of what keeps a file, two are as good as many: one of them can go, and the file stays."""

_FUNCTIONS = (
    "hops_of(way ARRAY<STRING>)"
    " RETURNS ARRAY<STRUCT<before: STRING, source: STRING, way: STRING, target: STRING>>"
    " RETURN transform(sequence(1, size(way)), place -> named_struct("
    "'before', array_join(slice(way, 1, place - 1), chr(0)), 'source', get(way, place - 1),"
    " 'way', array_join(slice(way, 1, place), chr(0)), 'target', get(way, place)))",
    # The queues of streams, and of what they keep of themselves.
    "is_of_streams(kind STRING, name STRING) RETURNS BOOLEAN"
    " RETURN coalesce(kind = 'queue' AND name LIKE 'Lockkeeper.Stream.%', false)",
    # Of the queue of a segment the number of its partition, its first offset, the stream.
    "segment_part(name STRING, part INT) RETURNS STRING RETURN regexp_extract(name,"
    " '^Lockkeeper[.]Stream[.](0|[1-9][0-9]{0,2}|10[01][0-9]|102[0-3])[.](0[0-4][0-9]{18})[.]"
    "((?s:.+))$', part)",
    "milliseconds_between(moment TIMESTAMP, other TIMESTAMP) RETURNS BIGINT"
    " RETURN div(unix_micros(other) - unix_micros(moment), 1000)",
    "no_counts() RETURNS MAP<STRING, BIGINT> RETURN CAST(map() AS MAP<STRING, BIGINT>)",
    "no_numbers() RETURNS ARRAY<BIGINT> RETURN CAST(array() AS ARRAY<BIGINT>)",
    "no_texts() RETURNS ARRAY<STRING> RETURN CAST(array() AS ARRAY<STRING>)",
    "regexp_replace_all(words STRING, pattern STRING, other STRING) RETURNS STRING"
    " RETURN regexp_replace(words, pattern, other)",
)
"""Where DuckDB's are in `sql/dialect.sql`."""


def register_functions(session: SparkSession) -> None:
    """Make the functions known to *session*."""
    for function in (*_FUNCTIONS, *spark_structs()):
        session.sql(f"CREATE OR REPLACE TEMPORARY FUNCTION {function}")
    session.udf.register("file_causes", file_causes, "array<int>")
    session.udf.register("followed", followed, "array<bigint>")


def followed(nexts: Sequence[int]) -> list[int]:
    """Return those steps of a way that are reached from the first; each tells the next one."""
    reached, number = [], 1
    while number <= len(nexts):
        reached.append(number)
        number = nexts[number - 1]
    return reached


def file_causes(
    files: Sequence[int],
    needed: Sequence[int] | None,
    sources: Sequence[int] | None,
    targets: Sequence[int] | None,
) -> list[int | None]:
    """Return for each of *files* which one of those *needed* keeps it, itself perhaps.

    A record in each of *sources* ends something in the file beside it in *targets*, so that the
    source stays as long as the target does. SEVERAL where more than one keeps a file, None where
    nothing does (kahadb.md section 6).
    """
    behind: dict[int, set[int]] = {}
    for source, target in zip(sources or (), targets or (), strict=True):
        behind.setdefault(target, set()).add(source)
    causes: dict[int, set[int]] = {}
    for start in needed or ():
        waiting = [start]
        while waiting:
            known = causes.setdefault(number := waiting.pop(), set())
            if start not in known and len(known) < 2:
                known.add(start)
                waiting += behind.get(number, ())
    return [_cause(causes.get(number, set())) for number in files]


def _cause(known: set[int]) -> int | None:
    return None if not known else min(known) if len(known) == 1 else SEVERAL
