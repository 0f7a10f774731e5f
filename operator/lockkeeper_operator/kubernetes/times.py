"""Times as the API server writes them."""

from datetime import UTC, datetime


def parsed(text: str) -> datetime:
    """Return the moment that RFC 3339 text says."""
    return datetime.fromisoformat(text).astimezone(UTC)


def written(moment: datetime) -> str:
    """Return a moment as RFC 3339 text, to the second."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
