"""Formats of histories."""

from enum import StrEnum


class Format(StrEnum):
    """What a history is kept as."""

    PARQUET = "parquet"
    DELTA = "delta"
