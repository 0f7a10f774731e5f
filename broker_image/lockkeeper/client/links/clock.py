"""The time, as the core is told it."""

import time

from lockkeeper.client.core.waiting import Moment


def moment() -> Moment:
    """Return the time."""
    return Moment(time.monotonic(), time.time())
