"""Books of a consumer: what was handed out, and which acknowledgements follow from it.

Each mode has its own kind of book (openwire.md section 7.5; the shares and times are those of
ActiveMQ's client). What was handed out belongs to one link: when that is lost, the broker sends
it again, except for what was acknowledged.
"""

from collections.abc import Callable

from lockkeeper.client.core.delivery import Delivery
from lockkeeper.message.openwire import AckType

Send = Callable[[AckType, list[Delivery]], None]
"""Sends one acknowledgement of deliveries, in their order."""


class Book:
    """Deliveries that are handed out and not settled, by arrival: `delivered`."""

    due: float | None = None
    """When something must be sent at the latest."""

    def __init__(self, send: Send) -> None:
        self.delivered: dict[int, Delivery] = {}
        self._send = send

    def hand_out(self, delivery: Delivery, prefetch: int, now: float, is_held: bool) -> None:
        """Note a delivery; one that *is_held* is settled by `finish`, when it is processed."""
        raise NotImplementedError

    def finish(self, delivery: Delivery, prefetch: int, now: float) -> None:
        """Note that a held delivery is processed."""

    def flush(self) -> None:
        """Send what waits."""

    def forget(self) -> list[Delivery]:
        """Forget everything, the link is lost; return what had been settled without a word."""
        self.delivered.clear()
        return []

    def take_back(self) -> list[Delivery]:
        """Give what is held out of the book, to be handed out again."""
        found = list(self.delivered.values())
        self.delivered.clear()
        return found


class EachBook(Book):
    """AUTO: a STANDARD acknowledgement for each message."""

    def hand_out(self, delivery: Delivery, prefetch: int, now: float, is_held: bool) -> None:
        """See `Book`."""
        if is_held:
            self.delivered[delivery.arrival] = delivery
        else:
            self._send(AckType.STANDARD, [delivery])

    def finish(self, delivery: Delivery, prefetch: int, now: float) -> None:
        """See `Book`."""
        if self.delivered.pop(delivery.arrival, None) is not None:
            self._send(AckType.STANDARD, [delivery])


class BatchBook(Book):
    """DUPS_OK and optimizeAcknowledge: one STANDARD acknowledgement for a share of the window.

    With a *patience* it is sent that many seconds after the first message at the latest.
    """

    def __init__(self, send: Send, share: float, patience: float | None) -> None:
        super().__init__(send)
        self._share = share
        self._patience = patience
        self._processed: list[Delivery] = []

    def hand_out(self, delivery: Delivery, prefetch: int, now: float, is_held: bool) -> None:
        """See `Book`."""
        if is_held:
            self.delivered[delivery.arrival] = delivery
        else:
            self._process(delivery, prefetch, now)

    def finish(self, delivery: Delivery, prefetch: int, now: float) -> None:
        """See `Book`."""
        if self.delivered.pop(delivery.arrival, None) is not None:
            self._process(delivery, prefetch, now)

    def _process(self, delivery: Delivery, prefetch: int, now: float) -> None:
        if self._patience and not self._processed:
            self.due = now + self._patience
        self._processed.append(delivery)
        if len(self._processed) >= prefetch * self._share:
            self.flush()

    def flush(self) -> None:
        """See `Book`."""
        self.due = None
        if self._processed:
            processed, self._processed = self._processed, []
            self._send(AckType.STANDARD, processed)

    def forget(self) -> list[Delivery]:
        """See `Book`."""
        self.due = None
        processed, self._processed = self._processed, []
        return processed + super().forget()


class KeptBook(Book):
    """CLIENT, INDIVIDUAL, TRANSACTED: kept until told; DELIVERED at half the window."""

    def __init__(self, send: Send) -> None:
        super().__init__(send)
        self._unreported: dict[int, Delivery] = {}

    def hand_out(self, delivery: Delivery, prefetch: int, now: float, is_held: bool) -> None:
        """See `Book`."""
        self.delivered[delivery.arrival] = delivery
        if delivery.is_reported:
            # It has been handed out before.
            return
        self._unreported[delivery.arrival] = delivery
        if prefetch and 2 * len(self._unreported) >= prefetch:
            reported = list(self._unreported.values())
            self._unreported.clear()
            for each in reported:
                each.is_reported = True
            self._send(AckType.DELIVERED, reported)

    def take_delivery(self, delivery: Delivery) -> bool:
        """Give one delivery out of the book; False when it is not in it."""
        self._unreported.pop(delivery.arrival, None)
        return self.delivered.pop(delivery.arrival, None) is not None

    def take_all(self) -> list[Delivery]:
        """Give everything out of the book."""
        found = list(self.delivered.values())
        self.delivered.clear()
        self._unreported.clear()
        return found

    def take_back(self) -> list[Delivery]:
        """See `Book`."""
        return self.take_all()

    def forget(self) -> list[Delivery]:
        """See `Book`."""
        self.take_all()
        return []
