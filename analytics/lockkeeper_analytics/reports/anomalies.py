"""Anomalies: periods far from the median of those before them."""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from lockkeeper_analytics.facts.acknowledged import percentile
from lockkeeper_analytics.facts.grouping import DESTINATION, cell_of
from lockkeeper_analytics.facts.journal import Journal
from lockkeeper_analytics.facts.uncounted import COUNTS, counts_of
from lockkeeper_analytics.reports.report import Column, Report, Unit

PERIODS = 12
"""So many cells of time make a period: a journal has at most 25, each with enough in it."""

BEFORE, BEFORE_MIN = 12, 6
"""Periods that one is compared with. Of fewer than six a median and its deviation say little."""

DEVIATIONS = 3.5
"""Iglewicz and Hoaglin's limit for a modified z-score; 0.6745 makes the median absolute
deviation comparable with a standard deviation."""

FLOOR = 0.05
"""The deviation counts as a twentieth of the median at least: even traffic has hardly any."""

FACTOR, LEAST = 2.0, 20.0
"""What is flagged is twice as much or half, and by so many messages or ms: less is no alarm."""

ANOMALIES_MAX = 1000


def anomalies(journal: Journal) -> DataFrame:
    """Return the periods of each destination whose value is unlike those before, latest first.

    `measure` is `enqueued`, `dequeued` or `dead_lettered` (messages in the period) or `p99_ms`.
    `before` is the median of the periods of the same length before it, `ratio` the value by it
    (null for none), `flag` `higher` or `lower`. The last period is left out: it is not over.
    """
    seconds = journal.cell_seconds * PERIODS
    near = Window.partitionBy(*DESTINATION, "measure").orderBy("period").rowsBetween(-BEFORE, -1)
    earlier = F.collect_list("value").over(near)
    compared = (
        _measures(journal, seconds)
        .withColumn("earlier", earlier)
        .where(f"size(earlier) >= {BEFORE_MIN}")
        .withColumn("before", _median("earlier"))
        .withColumn("apart", F.transform("earlier", lambda each: F.abs(each - F.col("before"))))
        .withColumn("deviation", F.greatest(_median("apart"), F.col("before") * FLOOR))
    )
    distance = F.abs(F.col("value") - F.col("before"))
    factor = F.greatest("value", "before") >= FACTOR * F.least("value", "before")
    far = (distance >= LEAST) & (0.6745 * distance > DEVIATIONS * F.col("deviation"))
    return (
        compared.where(far & factor)
        .select(
            *DESTINATION,
            "measure",
            "period",
            F.lit(seconds).alias("seconds"),
            "value",
            "before",
            F.when(F.col("before") > 0, F.col("value") / F.col("before")).alias("ratio"),
            F.when(F.col("value") > F.col("before"), "higher").otherwise("lower").alias("flag"),
        )
        .orderBy(F.desc("period"), *DESTINATION, "measure")
        .limit(ANOMALIES_MAX)
    )


def _measures(journal: Journal, seconds: int) -> DataFrame:
    """Return each measure in each whole period; counts are 0 where nothing happened."""
    step = F.expr(f"INTERVAL {seconds} SECONDS")
    counts = counts_of(journal, seconds)
    last = counts.agg(F.max("time").alias("last"))
    span = counts.groupBy(*DESTINATION).agg(F.min("time").alias("first")).crossJoin(last)
    periods = span.where("first < last").select(
        *DESTINATION, F.explode(F.sequence("first", F.col("last") - step, step)).alias("time")
    )
    named = (F.struct(F.lit(name).alias("measure"), _counted(name)) for name in COUNTS)
    filled = periods.join(counts, [*DESTINATION, "time"], "left").select(
        *DESTINATION, F.col("time").alias("period"), F.inline(F.array(*named))
    )
    late = journal.acknowledged.where("latency_ms IS NOT NULL").groupBy(
        *DESTINATION, cell_of(F.col("happened_at"), seconds).alias("period")
    )
    p99 = late.agg(percentile("latency_ms", 0.99).alias("value")).crossJoin(last)
    return filled.unionByName(
        p99.where("period < last").withColumn("measure", F.lit("p99_ms")).drop("last")
    )


def _counted(name: str) -> F.Column:
    return F.coalesce(F.col(name), F.lit(0)).cast("double").alias("value")


def _median(name: str) -> F.Column:
    """Return the middle of a list, or the mean of the two in the middle."""
    ordered = F.array_sort(name)
    size = F.size(name)
    low = F.get(ordered, F.floor((size - 1) / 2).cast("int"))
    return (low + F.get(ordered, F.floor(size / 2).cast("int"))) / 2


REPORT = Report(
    name="anomalies",
    title="Unlike before",
    question="Which periods were unlike those before them?",
    frame=anomalies,
    columns=(
        Column("period", "From", Unit.TIME),
        Column("seconds", "Seconds", Unit.COUNT),
        Column("destination", "Destination", Unit.DESTINATION),
        Column("measure", "Measure"),
        Column("flag", "Flag", Unit.BADGE),
        Column("value", "Value", Unit.DECIMAL),
        Column("before", "Median before", Unit.DECIMAL),
        Column("ratio", "Times", Unit.DECIMAL),
    ),
    plot=None,
    nothing="No period is unlike those before it, or there are too few to tell.",
)
