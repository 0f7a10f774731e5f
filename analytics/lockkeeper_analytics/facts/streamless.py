"""Journals without streams: nothing need be worked out of what is told of streams alone."""

from typing import Any

from pyspark.sql import DataFrame

from lockkeeper_analytics.facts.frames import Frames

OF_STREAMS = ("stream_entries", "stream_texts", "stream_partitions", "group_places")
"""The facts that reports of streams are made of: empty where there is no stream."""
# An aggregate is one job; to take the first of no rows is one after the other.
_ANY = "SELECT max(is_of_streams(destination_kind, destination)) FROM message_lifetimes"


def empty_facts(frames: Frames) -> dict[str, DataFrame]:
    """Return OF_STREAMS without rows if *frames* are of a journal that never had a stream.

    Spark drops what reads only such frames from its plan. Returns nothing where there are streams.
    """
    ((has_streams,),) = frames.ask(_ANY).collect()
    if has_streams:
        return {}
    return {name: _empty(frames, name) for name in OF_STREAMS}


def _empty(frames: Frames, name: str) -> DataFrame:
    session: Any = frames.session
    schema = frames.planned(name)._jdf.schema()
    # One that Python makes is not known to be empty when queries over it are planned.
    made = session._jsparkSession.createDataFrame(session._jvm.java.util.ArrayList(), schema)
    return DataFrame(made, session)
