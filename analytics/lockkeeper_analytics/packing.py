"""Structs that the texts of views make: several values as one, compared in this order.

Each is a function of its fields, in Spark and in DuckDB.
"""

_PLACE = {"position": "BIGINT", "record_position": "BIGINT"}
_STEP = {
    **_PLACE,
    "happened_at": "TIMESTAMP",
    "happened_after": "TIMESTAMP",
    "happened_before": "TIMESTAMP",
    "kind": "STRING",
}
STRUCTS = {
    "place_of": _PLACE,
    "step": _STEP,
    "dated": {**_PLACE, "moment": "TIMESTAMP"},
    "written": {
        "position": "BIGINT",
        "written_after": "TIMESTAMP",
        "written_before": "TIMESTAMP",
    },
    "written_in": {
        **_PLACE,
        "happened_after": "TIMESTAMP",
        "happened_before": "TIMESTAMP",
    },
    "last_end": {
        **_PLACE,
        "dead_letter": "STRING",
        "consumer_id": "STRING",
        "transaction": "STRING",
        "cause": "STRING",
    },
    "counted_of": {"owner": "STRING", "messages": "BIGINT"},
}
"""Names and types of each one's fields."""


def duckdb_macros() -> str:
    """Return the statements that make the functions known to DuckDB."""
    return "\n".join(
        f"CREATE MACRO {name}({', '.join(fields)}) AS "
        f"{{{', '.join(f'{field!r}: {field}' for field in fields)}}};"
        for name, fields in STRUCTS.items()
    )


def spark_structs() -> list[str]:
    """Return the functions as Spark's SQL defines them."""
    return [_function(name, fields) for name, fields in STRUCTS.items()]


def _function(name: str, fields: dict[str, str]) -> str:
    given = ", ".join(f"{field} {kind}" for field, kind in fields.items())
    taken = ", ".join(f"{field}: {kind}" for field, kind in fields.items())
    packed = ", ".join(f"'{field}', {field}" for field in fields)
    return f"{name}({given}) RETURNS STRUCT<{taken}> RETURN named_struct({packed})"
