"""Sizes of messages: counts and bytes by powers of two."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lockkeeper_analytics.facts.grouping import DESTINATION
from lockkeeper_analytics.facts.journal import Journal
from lockkeeper_analytics.reports.report import Column, Heat, Report, Tone, Unit


def sizes(journal: Journal) -> DataFrame:
    """Return one row for each destination and class of size that messages came in.

    A message counts where its size as it is stored, with its header, is at least `at_least`
    bytes and below `below`, which is twice as much. Dead letters count where they came to.
    """
    adds = journal.effects.where((F.col("kind") == "add") & F.col("message_bytes").isNotNull())
    return (
        adds.withColumn("at_least", power_of_two(F.col("message_bytes")))
        .groupBy(*DESTINATION, "at_least")
        .agg(F.count("*").alias("messages"), F.sum("message_bytes").alias("bytes"))
        .select(
            *DESTINATION,
            "at_least",
            (F.col("at_least") * 2).alias("below"),
            "messages",
            "bytes",
        )
        .orderBy("at_least", *DESTINATION)
    )


def power_of_two(number: F.Column) -> F.Column:
    """Return the highest power of two that is not above *number*; 1 for what is below."""
    digits = F.length(F.bin(F.greatest(number, F.lit(1))))
    return F.pow(F.lit(2), digits - 1).cast("bigint")


REPORT = Report(
    name="sizes",
    title="How big",
    question="How big are the messages of each destination?",
    frame=sizes,
    columns=(
        Column("destination", "Destination", Unit.DESTINATION),
        Column("at_least", "From", Unit.BYTES),
        Column("below", "To below", Unit.BYTES),
        Column("messages", "Messages", Unit.COUNT, Tone.CAME),
        Column("bytes", "Together", Unit.BYTES, Tone.MIDDLE),
    ),
    plot=Heat("at_least", ("destination",), "messages"),
    nothing="The journal holds no message.",
)
