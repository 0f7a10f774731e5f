"""Bridges for many destinations: what one of them costs does not depend on how many there are."""

import pytest
from linked_brokers import Link, Node

from lockkeeper.message.destination import Destination, path_matches
from lockkeeper.message.openwire import ConsumerId
from lockkeeper.network import inclusion
from lockkeeper.network.demand import Demand

MANY = 200


@pytest.mark.parametrize("kind", ["queue", "topic"])
def test_consumers_of_many_destinations_are_not_compared_with_each_other(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broker with tens of thousands of them would stand still while a bridge begins or ends."""
    looks: list[object] = []
    stands_for = Demand.stands_for

    def matching(pattern: tuple[str, ...], path: tuple[str, ...]) -> bool:
        looks.append(path)
        return path_matches(pattern, path)

    def standing(demand: Demand, ids: frozenset[ConsumerId], destination: Destination) -> bool:
        looks.append(demand)
        return stands_for(demand, ids, destination)

    monkeypatch.setattr(inclusion, "path_matches", matching)
    monkeypatch.setattr(Demand, "stands_for", standing)
    here, there = Node("here"), Node("there")
    client = there.client()
    consumers = [client.consume(f"{kind}://D.{number}") for number in range(MANY)]
    link = Link(here, there)
    assert link.bridge.demand is not None
    assert len(link.bridge.demand.demands) == MANY
    for consumer in consumers[:-1]:
        client.close(consumer)
    link.pump()
    assert [each.destination.name for each in link.bridge.demand.demands] == [f"D.{MANY - 1}"]
    link.cut()
    assert len(looks) <= 2 * MANY
