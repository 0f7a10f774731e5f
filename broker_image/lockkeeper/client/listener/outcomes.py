"""Outcomes: what a function says of its message other than that it is done.

They are raised or returned alike. What the function has sent in its session is undone.
"""

from dataclasses import dataclass

DELAY_SECONDS_MAX = 100 * 365 * 86_400.0


class Outcome(Exception):
    """Something other than success; see `reject`, `retry` and `dead_letter`."""


@dataclass(eq=False)
class Rejected(Outcome):
    """The message failed."""

    cause: str


@dataclass(eq=False)
class Retried(Outcome):
    """The message comes again later."""

    delay: float


@dataclass(eq=False)
class DeadLettered(Outcome):
    """The message is given up."""

    reason: str


def reject(cause: str = "rejected") -> Outcome:
    """Let the message come again as the redelivery policy says, as any other error does.

    Unlike an error, it is expected: the error handler is not called.
    """
    return Rejected(cause)


def retry(delay: float) -> Outcome:
    """Let the message come again after *delay* seconds; others are not held up meanwhile.

    The broker's scheduler keeps a copy of it; without one (`schedulerSupport` is off), a consumer
    waits with it. It counts as a failure: once there were more of these than the redelivery
    policy allows, the message is a dead letter. Raises ValueError for a delay of 0 or less, or of
    more than a hundred years.
    """
    if not 0 < delay <= DELAY_SECONDS_MAX:
        raise ValueError(
            f"a message comes again after more than 0 s up to 100 years, not {delay:g}"
        )
    return Retried(delay)


def dead_letter(reason: str) -> Outcome:
    """Send the message to the dead letter queue, with its *reason*."""
    return DeadLettered(reason)
