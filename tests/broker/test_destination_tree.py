"""Destinations that a wildcard stands for: the same as by comparing it with each of them."""

import random
from typing import TYPE_CHECKING

import pytest

from lockkeeper.broker.regions.patterns import stands_for
from lockkeeper.broker.regions.tree import Tree
from lockkeeper.message.destination import Destination, Kind, queue

if TYPE_CHECKING:
    from conftest import Bench

LEVELS = ("A", "B", "", "*", ">", "ActiveMQ", "Scheduler", "Jobs")
KINDS = (Kind.QUEUE, Kind.TOPIC, Kind.TEMP_QUEUE)


def any_destination(chosen: random.Random) -> Destination:
    levels = chosen.choices(LEVELS, (8, 8, 1, 3, 1, 2, 2, 2), k=chosen.randrange(1, 5))
    return Destination(chosen.choice(KINDS), ".".join(levels) or "A")


@pytest.mark.parametrize("seed", range(30))
def test_the_same_is_found_as_by_comparing_with_all(bench: "Bench", seed: int) -> None:
    chosen = random.Random(seed)
    registry, context = bench.broker.registry, bench.broker.context
    for _ in range(300):
        if chosen.random() < 0.6:
            registry.ensure(context, any_destination(chosen))
        elif there := [region.destination for region in registry]:
            registry.forget(chosen.choice([*there, any_destination(chosen)]))
        pattern = any_destination(chosen)
        found = [region.destination for region in registry.matching(pattern)]
        there = [region.destination for region in registry]
        assert len(found) == len(set(found))
        assert set(found) == {each for each in there if stands_for(pattern, each)}


def test_what_is_all_removed_leaves_nothing(bench: "Bench") -> None:
    chosen = random.Random(1)
    registry, tree = bench.broker.registry, Tree()
    regions = {registry.ensure(bench.broker.context, any_destination(chosen)) for _ in range(200)}
    for region in regions:
        tree.add(region)
    for region in regions:
        tree.remove(region.destination)
    assert tree._roots == {kind: {} for kind in Kind}


def test_a_wildcard_is_not_compared_with_what_it_cannot_stand_for(
    bench: "Bench", monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(300):
        bench.broker.route(queue(f"SHOP.{number}.ORDERS"))
    split = 0

    def counting(destination: Destination) -> tuple[str, ...]:
        nonlocal split
        split += 1
        return tuple(destination.name.split("."))

    monkeypatch.setattr(Destination, "path", property(counting))
    bench.client().consume("SHOP.7.>")
    assert split < 30
