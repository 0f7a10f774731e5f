"""Duplicate suppression: what was acknowledged over a lost link must not be handed out again.

An acknowledgement is not answered. When the link is lost, the broker may not have got the last of
them, and sends these messages again. Who had them knows better (openwire.md section 7.10).
"""

from collections import deque

from lockkeeper.client.core.delivery import Delivery

WINDOW_MESSAGES = 2048


class Settled:
    """The last messages that a connection has acknowledged."""

    def __init__(self, is_watching: bool) -> None:
        """Without *is_watching* nothing is remembered: there is no second link."""
        self.is_watching = is_watching
        self._recent: deque[object] = deque(maxlen=WINDOW_MESSAGES)
        self._suspects: set[object] = set()

    def note_settled(self, delivery: Delivery) -> None:
        """Note what is acknowledged."""
        if self.is_watching:
            self._recent.append(delivery.key)

    def interrupt(self) -> None:
        """Note that the link is lost: from now on the last messages may come again."""
        self._suspects = set(self._recent)

    def note_late(self, delivery: Delivery) -> None:
        """Note what was processed after its link was lost."""
        if self.is_watching:
            self._recent.append(delivery.key)
            self._suspects.add(delivery.key)

    def holds(self, delivery: Delivery) -> bool:
        """Tell whether a message is one that was acknowledged before a link was lost."""
        return bool(self._suspects) and delivery.key in self._suspects
