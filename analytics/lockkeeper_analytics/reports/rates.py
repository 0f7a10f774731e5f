"""Rates: the messages that came and went in each cell of time."""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.window import WindowSpec

from lockkeeper_analytics.facts.grouping import DESTINATION, cell_of, dead_letters_of
from lockkeeper_analytics.facts.journal import Journal
from lockkeeper_analytics.reading.recorder import STARTING_EVENTS
from lockkeeper_analytics.reports.report import Column, Lines, Report, Series, Tone, Unit

COUNTS = ("enqueued", "dequeued", "dead_lettered", "redelivered")


def rates(journal: Journal) -> DataFrame:
    """Return the counts of each destination in each cell of `seconds` seconds.

    Records count where they happened. What a statistics line counts beyond the records in front
    of it (messages that were never written) is spread evenly over the time the line stands for.
    """
    seconds = journal.cell_seconds
    counts = _from_records(journal, seconds).withColumn("redelivered", F.lit(0.0))
    if not journal.statistics.isEmpty():
        beyond = _spread(_unrecorded(journal), seconds)
        counts = counts.unionByName(beyond, allowMissingColumns=True)
    sums = (F.sum(F.coalesce(name, F.lit(0.0))).alias(name) for name in COUNTS)
    return (
        counts.groupBy(*DESTINATION, "time")
        .agg(*sums)
        .withColumn("seconds", F.lit(seconds))
        .orderBy(*DESTINATION, "time")
    )


def _from_records(journal: Journal, seconds: int) -> DataFrame:
    cell = cell_of(F.col("happened_at"), seconds).alias("time")
    moved = journal.effects.where(F.col("kind").isin("add", "remove") & _has_time())
    counts = moved.groupBy(*DESTINATION, cell).agg(
        _count_of("add").alias("enqueued"), _count_of("remove").alias("dequeued")
    )
    dead = (
        dead_letters_of(moved)
        .groupBy("directory", "origin_kind", "origin", cell)
        .agg(F.count("*").cast("double").alias("dead_lettered"))
        .toDF(*DESTINATION, "time", "dead_lettered")
    )
    return counts.unionByName(dead, allowMissingColumns=True)


def _has_time() -> F.Column:
    return F.col("happened_at").isNotNull()


def _count_of(kind: str) -> F.Column:
    return F.sum((F.col("kind") == kind).cast("double"))


def _unrecorded(journal: Journal) -> DataFrame:
    """Return what each statistics line counts beyond the records between it and the one before."""
    lines = journal.statistics
    recorded = (
        _by_line(journal)
        .groupBy(*DESTINATION, "line")
        .agg(_count_of("add").alias("adds"), _count_of("remove").alias("removes"))
    )
    both = lines.withColumn("line", F.col("position")).join(
        recorded, [*DESTINATION, "line"], "left"
    )

    def beyond(new: str, found: str) -> F.Column:
        return F.greatest(F.col(new) - F.coalesce(found, F.lit(0.0)), F.lit(0.0))

    return both.select(
        *DESTINATION,
        "at",
        F.coalesce("previous_at", "at").alias("from"),
        beyond("new_enqueued", "adds").alias("enqueued"),
        beyond("new_dequeued", "removes").alias("dequeued"),
        F.col("new_redelivered").cast("double").alias("redelivered"),
    ).where("enqueued > 0 OR dequeued > 0 OR redelivered > 0")


def _by_line(journal: Journal) -> DataFrame:
    """Return adds and removes with the statistics line that counts them, if one does.

    That is the next line of the same run. Lines of the same file are found by sorting each file,
    others by asking for the first line of a later file.
    """
    columns = (*DESTINATION, "kind", "position")
    effects = journal.effects.where(F.col("kind").isin("add", "remove")).select(*columns)
    starting = journal.events.where(F.col("event").isin(*STARTING_EVENTS))
    marks = (
        journal.statistics.select("directory", "position", F.lit(True).alias("counts"))
        .distinct()
        .unionByName(starting.select("directory", "position", F.lit(False).alias("counts")))
        .withColumn("mark", F.struct("position", "counts"))
    )
    file_id = F.shiftright("position", 32)
    placed = effects.unionByName(marks.drop("counts"), allowMissingColumns=True)
    marked = placed.withColumn("file_id", file_id).withColumn(
        "next", F.last("mark", ignorenulls=True).over(_from_here_on("directory", "file_id"))
    )
    later = _next_file_marks(marks.withColumn("file_id", file_id), marked)
    found = marked.where(F.col("kind").isNotNull()).join(
        F.broadcast(later), ["directory", "file_id"], "left"
    )
    mark = F.coalesce("next", "later")
    return found.where(mark["counts"]).withColumn("line", mark["position"])


def _from_here_on(*keys: str) -> WindowSpec:
    """Return the window of a row and those behind it; `last` over it gives the nearest.

    It runs backwards because Spark sums up a window that grows, but begins anew at each row of
    one that shrinks.
    """
    return (
        Window.partitionBy(*keys)
        .orderBy(F.desc("position"))
        .rowsBetween(Window.unboundedPreceding, Window.currentRow)
    )


def _next_file_marks(marks: DataFrame, placed: DataFrame) -> DataFrame:
    """Return the first mark behind each file, as `later`."""
    files = placed.select("directory", "file_id").distinct()
    firsts = marks.groupBy("directory", "file_id").agg(F.min("mark").alias("first"))
    behind = (
        Window.partitionBy("directory")
        .orderBy(F.desc("file_id"))
        .rowsBetween(Window.unboundedPreceding, -1)
    )
    return files.join(firsts, ["directory", "file_id"], "left").select(
        "directory", "file_id", F.last("first", ignorenulls=True).over(behind).alias("later")
    )


def _spread(counts: DataFrame, seconds: int) -> DataFrame:
    """Spread counts from `from` to `at` evenly over the cells between."""
    start, end = F.unix_millis("from") / 1000, F.unix_millis("at") / 1000
    first, last = cell_of(F.col("from"), seconds), cell_of(F.col("at"), seconds)
    step = F.expr(f"INTERVAL {seconds} SECONDS")
    cells = counts.withColumn("time", F.explode(F.sequence(first, last, step)))
    begin = F.unix_seconds("time")
    overlap = F.least(end, begin + seconds) - F.greatest(start, begin)
    share = F.when(end > start, overlap / (end - start)).otherwise(1.0)
    names = ("enqueued", "dequeued", "redelivered")
    return cells.select(
        *DESTINATION, "time", *((F.col(name) * share).alias(name) for name in names)
    )


REPORT = Report(
    name="rates",
    title="Flow",
    question="How many messages came in and left, and when?",
    frame=rates,
    columns=(
        Column("destination", "Destination", Unit.DESTINATION),
        Column("time", "From", Unit.TIME),
        Column("seconds", "Seconds", Unit.COUNT),
        Column("enqueued", "Came in", Unit.COUNT, Tone.CAME),
        Column("dequeued", "Left", Unit.COUNT),
        Column("dead_lettered", "Dead letters", Unit.COUNT),
        Column("redelivered", "Redelivered", Unit.COUNT),
    ),
    plot=Lines(
        (
            Series("enqueued", "came in", Tone.CAME, floor=""),
            Series("dequeued", "left", Tone.LEFT),
            Series("dead_lettered", "dead letters", Tone.BAD),
        ),
        together="sum",
        is_rate=True,
    ),
    nothing="Nothing came and nothing left.",
)
