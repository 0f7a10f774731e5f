"""Clock of the operator."""

import time
from datetime import UTC, datetime


class Clock:
    """Two clocks: one for people, one that only ever goes forward."""

    def monotonic(self) -> float:
        """Return seconds since some time in the past."""
        return time.monotonic()

    def text(self) -> str:
        """Return the time as RFC 3339 has it, to the second."""
        return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    def seconds_since(self, text: str) -> float:
        """Return how long ago *text* was, a time as the API server writes it."""
        then = datetime.fromisoformat(text.replace("Z", "+00:00"))
        return (datetime.now(UTC) - then).total_seconds()
