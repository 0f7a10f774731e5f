"""Sending many messages: in transactions, again when the connection broke within one."""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from lockkeeper.cli.errors import CommandError, explain
from lockkeeper.cli.output import say
from lockkeeper.client import (
    MessagingError,
    RefusedError,
    Session,
    TransactionInDoubtError,
    TransactionRolledBackError,
)
from lockkeeper.message.bodies import Body

ATTEMPTS_MAX = 10
"""How often one batch is tried: every time, another broker was lost within it."""


@dataclass
class Tally:
    """Count of sent messages; *in_doubt* of them perhaps arrived twice."""

    messages: int = 0
    in_doubt: int = 0
    began: float = field(default_factory=time.monotonic)

    @property
    def seconds(self) -> float:
        """Seconds since the first send."""
        return time.monotonic() - self.began

    @property
    def rate(self) -> float:
        """Messages per second."""
        return self.messages / max(self.seconds, 1e-6)


def send_batches(
    session: Session, batches: Iterable[Sequence[Body]], send: Callable[[Body], str]
) -> Tally:
    """Send every batch in a transaction of *session*, by *send*, which is part of it.

    Nothing is lost: a batch whose fate is unknown is sent again, and counted as in doubt.
    Raises CommandError that says how much was sent before.
    """
    tally = Tally()
    try:
        for batch in batches:
            _send_batch(session, batch, send, tally)
            tally.messages += len(batch)
    except (MessagingError, CommandError, KeyboardInterrupt) as error:
        text, code = explain(error)
        raise CommandError(
            f"{text} ({tally.messages:,} messages were sent before)", code
        ) from error
    if tally.in_doubt:
        say(f"a connection broke while it was used: {tally.in_doubt:,} may have been sent twice")
    return tally


def _send_batch(
    session: Session, batch: Sequence[Body], send: Callable[[Body], str], tally: Tally
) -> None:
    for attempt in range(1, ATTEMPTS_MAX + 1):
        try:
            for body in batch:
                send(body)
            session.commit()
            return
        except TransactionRolledBackError as error:
            if isinstance(error.__cause__, RefusedError) or attempt == ATTEMPTS_MAX:
                raise
            if isinstance(error, TransactionInDoubtError):
                tally.in_doubt += len(batch)
