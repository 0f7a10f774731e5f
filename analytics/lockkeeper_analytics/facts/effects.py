"""Effects of a journal's records: transactions applied, each effect in its place.

An add or remove of a transaction counts where its commit is, or not at all (kahadb.md section
4). Positions order the records of one directory: file number, then offset.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

_TOLD = (
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
)
"""What an effect tells of its record as it stands."""

RECORD_COLUMNS = (
    "directory",
    "file_id",
    "offset",
    "written_after",
    "written_before",
    "recorder",
    *_TOLD,
)
"""The columns of the data source that effects and reports are made of."""

OUTCOMES = ("commit", "rollback")
EFFECTS = ("add", "update", "remove", "subscribe", "unsubscribe", "remove_destination")
PREPARED_REMOVE = "prepared_remove"
UNMATCHED = "unmatched"
"""A subscription is done with a message that its selector did not want: nobody took it."""
_DOUBT = 25
"""Milliseconds: half of what lies between two clock lines."""


def with_position(records: DataFrame) -> DataFrame:
    """Return *records* with their `position` in the directory."""
    position = F.shiftleft(F.col("file_id").cast("bigint"), 32) + F.col("offset")
    return records.withColumn("position", position)


def effects_of(records: DataFrame) -> DataFrame:
    """Return the adds, updates, removes and changes of destinations that took effect.

    `position`, `happened_after` and `happened_before` are those of the commit for what was done
    in a transaction; `happened_at` is the likeliest time between the two. `record_position` is
    where the record itself lies. `shown_id` is the JMSMessageID, also where `message_id` is a
    copy's. A remove without an acknowledgement in it comes as `unmatched`.
    """
    placed = with_position(records).withColumn("record_position", F.col("position"))
    plain = placed.where(F.col("transaction").isNull() & F.col("kind").isin(*EFFECTS))
    effects = plain.unionByName(_committed(placed))
    after, before = F.col("written_after"), F.col("written_before")
    return effects.select(
        "directory",
        "position",
        "record_position",
        after.alias("happened_after"),
        before.alias("happened_before"),
        _likeliest(after, before).alias("happened_at"),
        *(_kind() if name == "kind" else name for name in _TOLD),
        F.coalesce("copy_of", "message_id").alias("shown_id"),
    )


def _kind() -> F.Column:
    is_unmatched = (F.col("ack_type") == UNMATCHED) & F.col("subscription").isNotNull()
    return (
        F.when(is_unmatched & (F.col("kind") == "remove"), UNMATCHED)
        .otherwise(F.col("kind"))
        .alias("kind")
    )


def _committed(placed: DataFrame) -> DataFrame:
    """Return what committed transactions did, with the place and the times of the commit.

    Removes of a transaction that is prepared and no more hide their message until its outcome:
    they come as `prepared_remove`, where they are.
    """
    kind = F.col("kind")
    place = F.struct("position", "kind", "written_after", "written_before")
    outcomes = (
        placed.where(kind.isin(*OUTCOMES))
        .groupBy("directory", "transaction")
        .agg(F.array_sort(F.collect_list(place)).alias("outcomes"))
    )
    prepared = (
        placed.where(kind == "prepare")
        .groupBy("directory", "transaction")
        .agg(F.max("position").alias("prepared"))
    )
    key = ["directory", "transaction"]
    effects = placed.where(F.col("transaction").isNotNull() & kind.isin(*EFFECTS))
    decided = effects.join(outcomes, key, "left").join(prepared, key, "left")
    # An id may be used again: what counts is the first outcome behind the record.
    later = F.filter("outcomes", lambda each: each["position"] > F.col("position"))
    decided = decided.withColumn("outcome", F.get(later, 0)).drop("outcomes")
    committed = decided.where(F.col("outcome.kind") == "commit")
    for name in ("position", "written_after", "written_before"):
        committed = committed.withColumn(name, F.col(f"outcome.{name}"))
    in_doubt = decided.where(
        F.col("outcome").isNull() & (F.col("prepared") > F.col("position")) & (kind == "remove")
    ).withColumn("kind", F.lit(PREPARED_REMOVE))
    return committed.unionByName(in_doubt).drop("outcome", "prepared")


def _likeliest(after: F.Column, before: F.Column) -> F.Column:
    """Return the middle of the two bounds, but never far above the first.

    What is written between two adds an hour apart most likely followed the first at once.
    """
    width = F.unix_millis(F.coalesce(before, after)) - F.unix_millis(after)
    doubt = F.least(width / 2, F.lit(_DOUBT)).cast("bigint")
    return F.timestamp_millis(F.unix_millis(after) + doubt)
