"""Destinations that a wildcard stands for: the same as by comparing it with each of them."""

import random
import tracemalloc
from typing import TYPE_CHECKING

import pytest

from lockkeeper.broker.regions.patterns import stands_for
from lockkeeper.broker.regions.tree import Tree
from lockkeeper.message.destination import Destination, Kind, queue

if TYPE_CHECKING:
    from conftest import Bench

LEVELS = ("A", "B", "", "*", ">", "ActiveMQ", "Scheduler", "Jobs")
KINDS = (Kind.QUEUE, Kind.TOPIC, Kind.TEMP_QUEUE)

DESTINATION_BYTES_MAX = 9 << 10
"""What a destination takes whose name has 4,000 characters."""


def any_destination(chosen: random.Random) -> Destination:
    length = chosen.choice((1, 2, 3, 4, 4, 9))
    levels = chosen.choices(LEVELS, (8, 8, 1, 3, 1, 2, 2, 2), k=length)
    if chosen.random() < 0.3:
        levels = ["A"] * chosen.randrange(6) + levels
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
    assert [root.following for root in tree._roots.values()] == [{} for _ in Kind]


@pytest.mark.parametrize("endings", [("x",), ("x", "y"), ("", "x", "x.y")], ids=str)
def test_levels_at_which_nothing_parts_take_no_memory(
    bench: "Bench", endings: tuple[str, ...]
) -> None:
    count, middle = 60, ".".join("a" * 2_000)
    names = [f"{number}.{middle}.{end}" for number in range(count) for end in endings]
    tracemalloc.start()
    try:
        for name in names:
            bench.broker.route(queue(name))
        size, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert size < len(names) * DESTINATION_BYTES_MAX
    found = {each.destination.name for each in bench.broker.registry.matching(queue("7.*.a.>"))}
    assert found == {name for name in names if name.startswith("7.")}


def test_ordinary_names_take_little(bench: "Bench") -> None:
    count = 20_000
    regions = [
        bench.broker.registry.ensure(bench.broker.context, queue(f"SHOP.{number}.ORDERS"))
        for number in range(count)
    ]
    tree = Tree()
    tracemalloc.start()
    try:
        for region in regions:
            tree.add(region)
        size, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert size < count * 200


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
