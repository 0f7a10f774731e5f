"""Inbox of a consumer: messages that have arrived and are not handed out yet."""

import threading
import time
from collections import deque
from collections.abc import Iterable

from lockkeeper.client.errors import MessagingError
from lockkeeper.message.openwire import MessageDispatch


class Inbox:
    """A queue of dispatches between the reading thread and the application's.

    `changed` is its lock; the consumer guards what belongs to the same link with it.
    """

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.is_closed = False
        self._dispatches: deque[MessageDispatch] = deque()
        self._held_until = 0.0
        self._error: MessagingError | None = None

    def put_dispatch(self, dispatch: MessageDispatch) -> None:
        """Append what has arrived."""
        with self.changed:
            self._dispatches.append(dispatch)
            self.changed.notify()

    def put_back(self, dispatches: Iterable[MessageDispatch], delay: float) -> None:
        """Put *dispatches* before all others, and hold everything for *delay* seconds."""
        with self.changed:
            self._dispatches.extendleft(reversed(list(dispatches)))
            self._held_until = time.monotonic() + delay

    def clear(self) -> None:
        """Forget everything: the link it came by is lost."""
        with self.changed:
            self._dispatches.clear()
            self._held_until = 0.0
            self.changed.notify_all()

    def close(self, error: MessagingError | None) -> None:
        """Give out nothing more; raise *error*, if any, for whoever still asks."""
        with self.changed:
            self.is_closed = True
            self._error = self._error or error
            self.changed.notify_all()

    def raise_error(self) -> None:
        """Raise the error that closed the inbox, if one did."""
        if self._error is not None:
            raise self._error

    @property
    def is_empty(self) -> bool:
        """Tell whether nothing waits, held or not."""
        return not self._dispatches

    def pop(self) -> MessageDispatch | None:
        """Return the next dispatch if it can be given out now; `changed` must be held."""
        if not self._dispatches or (self._held_until and self._hold() > 0):
            return None
        return self._dispatches.popleft()

    def wait(self, deadline: float | None) -> bool:
        """Wait for a change; `changed` must be held. False when *deadline* has passed."""
        seconds = None if deadline is None else deadline - time.monotonic()
        if seconds is not None and seconds <= 0:
            return False
        if self._dispatches:
            seconds = self._hold() if seconds is None else min(seconds, self._hold())
        self.changed.wait(seconds)
        return True

    def _hold(self) -> float:
        return max(0.0, self._held_until - time.monotonic())
