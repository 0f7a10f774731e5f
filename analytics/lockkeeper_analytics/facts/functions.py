"""Functions that the texts of views call and Spark does not have.

DuckDB's are in `sql/dialect.sql`, beside those that it calls by another name than Spark.
"""

from collections.abc import Mapping, Sequence

from pyspark.sql import SparkSession

SEVERAL = -1
"""Of what keeps a file, two are as good as many: one of them can go, and the file stays."""

_STEP = {
    "position": "BIGINT",
    "record_position": "BIGINT",
    "happened_at": "TIMESTAMP",
    "kind": "STRING",
}
_HELD_IN = {
    "record_position": "BIGINT",
    "record_bytes": "INT",
    "stored_at": "TIMESTAMP",
    "message_bytes": "INT",
    "dead_letter_cause": "STRING",
}
_FIRST_ADD = {
    "position": "BIGINT",
    "record_position": "BIGINT",
    "happened_at": "TIMESTAMP",
    "producer_id": "STRING",
    "priority": "INT",
    "group_id": "STRING",
    "transaction": "STRING",
    **{name: kind for name, kind in _HELD_IN.items() if name != "record_position"},
    "begins": "BIGINT",
    "purge": f"STRUCT<{', '.join(f'{name}: {kind}' for name, kind in _STEP.items())}>",
}
_STRUCTS = {"step": _STEP, "held_in": _HELD_IN, "first_add": _FIRST_ADD}
"""Several values as one, which are compared in this order: names and types of each."""

_REPLACE_ALL = """
    CREATE OR REPLACE TEMPORARY FUNCTION regexp_replace_all(
        words STRING, pattern STRING, other STRING)
    RETURNS STRING RETURN regexp_replace(words, pattern, other)
"""


def register_functions(session: SparkSession) -> None:
    """Make the functions known to *session*."""
    session.sql(_REPLACE_ALL)
    for name, fields in _STRUCTS.items():
        session.sql(_packing(name, fields))
    session.udf.register("file_causes", file_causes, "array<int>")


def _packing(name: str, fields: Mapping[str, str]) -> str:
    """Return the statement that makes the function *name*, which packs *fields*."""
    given = ", ".join(f"{field} {kind}" for field, kind in fields.items())
    taken = ", ".join(f"{field}: {kind}" for field, kind in fields.items())
    packed = ", ".join(f"'{field}', {field}" for field in fields)
    return (
        f"CREATE OR REPLACE TEMPORARY FUNCTION {name}({given}) "
        f"RETURNS STRUCT<{taken}> RETURN named_struct({packed})"
    )


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
