"""All bridges of one broker, which know of each other what they stand for."""

from collections.abc import Iterable, Iterator
from typing import Protocol

from lockkeeper.message.destination import Destination
from lockkeeper.message.openwire import ConsumerId
from lockkeeper.network.demand import Demand, ids_of
from lockkeeper.network.demands import Demands


class Demanding(Protocol):
    """One bridge's demand; see `DemandBook`."""

    demands: Demands

    def yield_to(self, demand: Demand, ids: frozenset[ConsumerId]) -> None:
        """Stand no more for consumers that another bridge has a better way to."""

    def reconsider(self, ids: frozenset[ConsumerId]) -> None:
        """Look again at consumers that another bridge had a better way to."""


class Bridges:
    """The bridges of one broker; a consumer of a network can be reached by several of them."""

    def __init__(self) -> None:
        self._books: list[Demanding] = []

    def join(self, book: Demanding) -> None:
        """Note the demand of a new bridge."""
        self._books.append(book)

    def leave(self, book: Demanding) -> None:
        """Forget a bridge's demand; others may look after its consumers now."""
        if book in self._books:
            self._books.remove(book)
            self._reconsider(book.demands)

    def others(
        self, ids: frozenset[ConsumerId], destination: Destination
    ) -> Iterator[tuple[Demanding, Demand]]:
        """Yield the demands, and whose they are, that stand for one of these as *destination*'s."""
        for book in self._books:
            for demand in book.demands.of_consumers(ids):
                if not demand.is_ending and demand.stands_for(ids, destination):
                    yield book, demand

    def ended(self, demand: Demand) -> None:
        """Have others look after consumers that nobody stands for any more."""
        self._reconsider((demand,))

    def _reconsider(self, demands: Iterable[Demand]) -> None:
        infos = (info for demand in demands for info in demand.remotes.values())
        ids = frozenset(each for info in infos for each in ids_of(info))
        # Of consumers that have left, nobody is left to be looked after.
        for book in self._books if ids else ():
            book.reconsider(ids)
