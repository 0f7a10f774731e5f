"""Facts without rows: of what no record of a journal tells, nothing need be worked out.

Spark drops from its plans what reads only frames that it knows to be empty.
"""

from typing import Any

from pyspark.sql import DataFrame

_TOLD_BY = {
    "recorder IS NOT NULL": ("statistics", "events"),
    "stream_state IS NOT NULL": ("stream_offsets", "declared_streams"),
    "is_of_streams(destination_kind, destination)": (
        "stream_entries",
        "stream_texts",
        "stream_partitions",
        "group_places",
    ),
    "broker_path IS NOT NULL": ("hops",),
    "transaction IS NOT NULL": ("outcomes", "transaction_records", "transaction_files"),
    "dead_letter_cause IS NOT NULL": ("dead_letter_records", "letters", "deaths"),
    "kind = 'prepare'": ("prepares", "prepared_transactions", "prepared_removes"),
    "kind = 'subscribe'": ("subscribed",),
    "kind = 'remove_destination'": ("periods",),
    "kind = 'update'": ("updates",),
}
"""The facts that are made of certain records only, by the condition of these."""

ANY_OF_THEM = f"SELECT {', '.join(f'max({condition})' for condition in _TOLD_BY)} FROM records"
"""The question whether there are records of each kind; an aggregate is one job."""

# Of a queue, each message has one lifetime. Of a topic it may have several, which are not counted:
# then the answer is higher than it might be.
LATER = """\
SELECT sum(number) FROM (
    SELECT count_if(kind IN ('add', 'update')) AS number FROM applied_operations
    UNION ALL SELECT -count_if(subscription IS NULL) FROM message_lifetimes
) told"""
"""The question how many adds begin no stay of a message, at most."""

LATER_ARRIVALS = ("later_arrivals",)
"""The facts that are made of such adds only."""


def absent_facts(answer: tuple[bool | None, ...]) -> set[str]:
    """Return the names of the facts that have no rows, by the *answer* to ANY_OF_THEM."""
    told = zip(_TOLD_BY.values(), answer, strict=True)
    return {name for names, are_there in told if not are_there for name in names}


def empty_like(frame: DataFrame) -> DataFrame:
    """Return a frame with the columns of *frame* that Spark knows to be empty."""
    session: Any = frame.sparkSession
    schema = frame._jdf.schema()
    # One that Python makes is not known to be empty when queries over it are planned.
    made = session._jsparkSession.createDataFrame(session._jvm.java.util.ArrayList(), schema)
    return DataFrame(made, session)
