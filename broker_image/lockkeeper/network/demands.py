"""All demands of one bridge, found without looking at each: there may be many thousands."""

from collections.abc import Iterable, Iterator
from typing import TypeAlias, TypeVar

from lockkeeper.message.destination import Destination
from lockkeeper.message.openwire import ConsumerId
from lockkeeper.network.demand import Demand, ids_of
from lockkeeper.network.inclusion import fits

# Sets that keep their order.
Found: TypeAlias = dict[Demand, None]
Key = TypeVar("Key", Destination, ConsumerId)


class Demands:
    """Demands by what they are of, and by the ids of the consumers that they stand for.

    One may stand for consumers before it is added.
    """

    def __init__(self) -> None:
        self._all: Found = {}
        self._single: dict[Destination, Found] = {}
        self._patterns: Found = {}
        self._by_id: dict[ConsumerId, Found] = {}

    def __iter__(self) -> Iterator[Demand]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)

    def __contains__(self, demand: Demand) -> bool:
        return demand in self._all

    def add(self, demand: Demand) -> None:
        """Note a demand that has its consumer."""
        self._all[demand] = None
        if demand.destination.is_pattern:
            self._patterns[demand] = None
        else:
            self._single.setdefault(demand.destination, {})[demand] = None

    def remove(self, demand: Demand) -> None:
        """Forget a demand, and whom it stands for."""
        self._all.pop(demand, None)
        self._patterns.pop(demand, None)
        _take_out(self._single, demand.destination, demand)
        for info in demand.remotes.values():
            self.stands_not_for(demand, ids_of(info))
        self.stands_not_for(demand, demand.forced)

    def stands_for(self, demand: Demand, ids: Iterable[ConsumerId]) -> None:
        """Note consumers that a demand stands for from now on."""
        for each in ids:
            self._by_id.setdefault(each, {})[demand] = None

    def stands_not_for(self, demand: Demand, ids: Iterable[ConsumerId]) -> None:
        """Forget that a demand stands for consumers."""
        for each in ids:
            _take_out(self._by_id, each, demand)

    def of(self, destination: Destination) -> list[Demand]:
        """Return the demands of exactly that destination, a single one."""
        return [*self._single.get(destination, ())]

    def serving(self, destination: Destination) -> list[Demand]:
        """Return the demands that bring messages of *destination*, a wildcard too."""
        patterns = (each for each in self._patterns if fits(each.destination, destination))
        found = (*self._single.get(destination, ()), *patterns)
        return [each for each in found if not each.is_ending]

    def of_consumers(self, ids: Iterable[ConsumerId]) -> list[Demand]:
        """Return the demands that stand for one of these consumers, and may stand for more."""
        return [*{demand: None for each in ids for demand in self._by_id.get(each, ())}]


def _take_out(places: dict[Key, Found], key: Key, demand: Demand) -> None:
    found = places.get(key)
    if found is not None:
        found.pop(demand, None)
        if not found:
            del places[key]
