"""Cluster filters: which other brokers clients are told of (ActiveMQ's updateClusterFilter)."""

import re

NEEDS_URLS = (
    "updateClusterClients and rebalanceClusterClients need advertisedUrls: "
    "where clients reach this broker"
)


def check_filter(text: str | None) -> str | None:
    """Return *text* if all its patterns can be compiled. Raises ValueError."""
    for pattern in patterns_of(text):
        try:
            re.compile(pattern)
        except re.error as error:
            raise ValueError(f"{pattern!r} is no regular expression: {error}") from error
    return text


def patterns_of(text: str | None) -> list[str]:
    """Return the patterns of a filter, which are separated by commas."""
    parts = (part.strip() for part in (text or "").split(","))
    return [part for part in parts if part]
