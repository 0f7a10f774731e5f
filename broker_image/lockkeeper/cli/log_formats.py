"""The ways a broker process can write its log."""

from enum import StrEnum


class LogFormat(StrEnum):
    """How a process writes its log."""

    TEXT = "text"
    JSON = "json"
