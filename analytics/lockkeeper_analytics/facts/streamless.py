"""Journals without streams: nothing need be worked out of what is told of streams alone."""

from pyspark.sql import DataFrame

from lockkeeper_analytics.facts.frames import Frames

OF_STREAMS = ("stream_entries", "stream_texts", "stream_partitions", "group_places")
"""The facts that reports of streams are made of: empty where there is no stream."""
_ANY = "SELECT 1 FROM message_lifetimes WHERE is_of_streams(destination_kind, destination) LIMIT 1"


def empty_facts(frames: Frames) -> dict[str, DataFrame]:
    """Return OF_STREAMS without rows if *frames* are of a journal that never had a stream.

    Spark drops what reads only such frames from its plan: 28 reports of the demo otherwise begin
    a third of their tasks for them. Returns nothing where there are streams.
    """
    if frames.ask(_ANY).take(1):
        return {}
    return {name: _empty(frames, name) for name in OF_STREAMS}


def _empty(frames: Frames, name: str) -> DataFrame:
    fields = frames.planned(name).schema.fields
    nothing = (f"CAST(NULL AS {each.dataType.simpleString()}) AS {each.name}" for each in fields)
    return frames.session.sql(f"SELECT {', '.join(nothing)} WHERE false")
