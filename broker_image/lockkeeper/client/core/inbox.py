"""Inbox of a consumer: deliveries that have arrived and are not handed out yet."""

from collections import deque
from collections.abc import Iterable, Iterator
from itertools import chain

from lockkeeper.client.core.delivery import Delivery

PRIORITIES = 10


class Inbox:
    """First in, first out."""

    def __init__(self) -> None:
        self._line: deque[Delivery] = deque()

    def __len__(self) -> int:
        return len(self._line)

    def __iter__(self) -> Iterator[Delivery]:
        return iter(self._line)

    def put_delivery(self, delivery: Delivery) -> None:
        """Append what has arrived."""
        self._line.append(delivery)

    def put_back(self, deliveries: Iterable[Delivery]) -> None:
        """Put *deliveries* before all others."""
        self._line.extendleft(reversed(list(deliveries)))

    def pop(self) -> Delivery:
        """Return the next delivery; there must be one."""
        return self._line.popleft()

    def clear(self) -> None:
        """Forget everything."""
        self._line.clear()


class PriorityInbox(Inbox):
    """The highest priority first; what has none, such as the end of a pull, comes last."""

    def __init__(self) -> None:
        self._lines: tuple[deque[Delivery], ...] = tuple(deque() for _ in range(PRIORITIES + 1))

    def __len__(self) -> int:
        return sum(map(len, self._lines))

    def __iter__(self) -> Iterator[Delivery]:
        return chain.from_iterable(self._lines)

    def put_delivery(self, delivery: Delivery) -> None:
        """Append what has arrived, behind all of its priority."""
        self._lines[_rank(delivery)].append(delivery)

    def put_back(self, deliveries: Iterable[Delivery]) -> None:
        """Put *deliveries* before all others of their priority."""
        for delivery in reversed(list(deliveries)):
            self._lines[_rank(delivery)].appendleft(delivery)

    def pop(self) -> Delivery:
        """Return the next delivery; there must be one."""
        return next(line for line in self._lines if line).popleft()

    def clear(self) -> None:
        """Forget everything."""
        for line in self._lines:
            line.clear()


def _rank(delivery: Delivery) -> int:
    """Return 0 for the highest priority."""
    if not delivery.has_message:
        return PRIORITIES
    return PRIORITIES - 1 - max(0, min(PRIORITIES - 1, delivery.priority))
