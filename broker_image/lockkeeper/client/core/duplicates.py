"""Duplicate suppression: what was acknowledged over a lost link must not be handed out again.

An acknowledgement is not answered. When the link is lost, the broker may not have got the last of
them, and sends these messages again. Who had them knows better (openwire.md section 7.10).

A message of a queue has one reader, whichever consumer that is. One of a topic has as many as
there are subscriptions, each of which is told apart: what one has acknowledged, another may lack.
"""

from collections import deque

WINDOW_MESSAGES = 2048


class Settled:
    """The last messages that a connection has acknowledged."""

    def __init__(self, is_watching: bool) -> None:
        """Without *is_watching* nothing is remembered: there is no second link."""
        self.is_watching = is_watching
        self._recent: deque[object] = deque(maxlen=WINDOW_MESSAGES)
        self._suspects: set[object] = set()

    def note_settled(self, key: object) -> None:
        """Note what is acknowledged; see `ConsumerCore.key_of`."""
        if self.is_watching:
            self._recent.append(key)

    def interrupt(self) -> None:
        """Note that the link is lost: from now on the last messages may come again."""
        self._suspects = set(self._recent)

    def note_late(self, key: object) -> None:
        """Note what was processed after its link was lost."""
        if self.is_watching:
            self._recent.append(key)
            self._suspects.add(key)

    @property
    def is_suspicious(self) -> bool:
        """Tell whether any message may have been acknowledged before a link was lost."""
        return bool(self._suspects)

    def holds(self, key: object) -> bool:
        """Tell whether a message was acknowledged before a link was lost."""
        return key in self._suspects
