"""The ways a broker process can write its log."""

from enum import StrEnum


class LogFormat(StrEnum):
    """Format of a process's log."""

    TEXT = "text"
    JSON = "json"
