"""Destinations that a new listener is told of: some in each turn, as there may be very many."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Final

from lockkeeper.broker.chores import Chore
from lockkeeper.broker.context import Context
from lockkeeper.message.destination import Destination

TOLD_AT_ONCE: Final = 50

Tell = Callable[[Sequence[Destination]], bool]


class DestinationReplay:
    """The destinations that were there as a listener came, and that it has yet to hear of.

    Each is told of once, and before its end; those that begin meanwhile are told of like all news.
    """

    def __init__(
        self,
        context: Context,
        there: Iterable[Destination],
        tell: Tell,
        end: Callable[["DestinationReplay"], None],
    ) -> None:
        """*tell* tells the listener of some destinations; False when it is gone.

        *end* is called when nothing is left to tell.
        """
        # The first ones are at the end: a dictionary gives them up quickly there.
        self._left = dict.fromkeys(reversed([*there]))
        self._tell = tell
        self._end = end
        self.is_under_way = True
        Chore(context, self._steps, TOLD_AT_ONCE).begin()

    def ends(self, destination: Destination) -> None:
        """Tell of a destination whose end is told next, unless that was done."""
        if destination in self._left:
            del self._left[destination]
            self._tell((destination,))

    def _steps(self) -> Iterator[int]:
        left = self._left
        while left:
            portion = [*islice(reversed(left), TOLD_AT_ONCE)]
            for destination in portion:
                del left[destination]
            if not self._tell(portion):
                left.clear()
            yield len(portion)
        self.is_under_way = False
        self._end(self)
