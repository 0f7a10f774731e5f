"""Narrowing a data frame: the rows of it that are asked for."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lockkeeper_analytics.facts.narrowing import SINCE, Kept, Narrowing


def kept(frame: DataFrame, rule: Kept, narrowing: Narrowing) -> DataFrame:
    """Return the rows of *frame* that *rule* keeps when what is asked for is *narrowing*."""
    if rule.since and narrowing.since:
        condition = rule.since.replace(SINCE, f"timestamp_millis({narrowing.since})")
        frame = frame.alias("told").where(condition)
    if rule.destination and narrowing.destinations:
        kind, name = map(F.col, rule.destination)
        frame = frame.where(F.concat(kind, F.lit("://"), name).rlike(narrowing.url_pattern))
    return frame
