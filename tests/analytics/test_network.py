"""Networks: ways of messages from broker to broker, by the journals of all or some of them."""

from collections import Counter
from pathlib import Path
from random import Random

import pytest
from journal_maker import JournalMaker
from journal_reports import asked, page_of, reports_of
from network_journals import ALL, dead_letter, grown
from sequential_network import SequentialNetwork

from lockkeeper.message.destination import queue, topic
from lockkeeper.message.openwire import BrokerId

SEEDS = 5


@pytest.fixture(scope="module")
def network(tmp_path_factory):
    return grown(tmp_path_factory.mktemp("network"))


def pairs(rows):
    """Return messages, those waiting and those stranded by brokers, where messages went."""
    return {
        (row["source"], row["target"]): (row["messages"], row["waiting"], row["stranded"])
        for row in rows
        if row["messages"]
    }


def in_order(rows):
    return sorted(([*row.items()] for row in rows), key=str)


def test_a_report_tells_what_went_from_whom_to_whom(network):
    rows = asked("FROM network_report", *network)
    assert pairs(rows) == {
        ("north", "south"): (10, 0, 0),
        ("south", "west"): (5, 2, 2),
        ("south", "east"): (5, 5, 0),
    }
    told = {(row["source"], row["target"]): (row["bridges"], row["forwarded"]) for row in rows}
    assert told == {
        ("north", "south"): (["to-south"], 10),
        ("south", "west"): (["to-west"], 5),
        ("south", "east"): (["to-east"], 5),
        ("south", "north"): (["to-south"], 0),
        ("west", "south"): (["to-west"], 0),
        ("east", "south"): (["to-east"], 0),
    }
    assert {row["target"]: row["target_waiting"] for row in rows} == {
        "north": 0, "south": 0, "west": 2, "east": 5,
    }  # fmt: skip
    assert in_order(rows) == in_order(SequentialNetwork(network).rows())


def test_a_broker_whose_journal_is_not_given_is_named_by_its_neighbours(network):
    north, _, west, _ = network
    rows = asked("FROM network_report", north, west)
    assert pairs(rows) == {("north", "south"): (5, 0, 0), ("south", "west"): (5, 2, 2)}
    south = {row["target_directory"] for row in rows if row["target"] == "south"}
    assert south == {None}
    assert in_order(rows) == in_order(SequentialNetwork([north, west]).rows())
    # Nobody tells what the broker is called that is two bridges away.
    rows = asked("FROM network_report", west)
    assert pairs(rows) == {("ID:north", "south"): (5, 0, 0), ("south", "west"): (5, 2, 2)}
    assert in_order(rows) == in_order(SequentialNetwork([west]).rows())


def test_without_events_messages_tell_whose_ids_are_in_their_paths(tmp_path):
    network = grown(tmp_path, unrecorded=ALL)
    rows = asked("FROM network_report", *network)
    assert pairs(rows) == {
        ("north", "south"): (10, 0, 0),
        ("south", "west"): (5, 2, 0),
        ("south", "east"): (5, 5, 0),
    }
    assert {row["forwarded"] for row in rows} == {None}
    assert in_order(rows) == in_order(SequentialNetwork(network).rows())


def test_a_dead_letter_has_crossed_no_other_bridge(tmp_path):
    directory = dead_letter(tmp_path / "b")
    assert pairs(asked("FROM network_report", directory)) == {("ID:a", "b"): (1, 1, 0)}


class RandomNetwork:
    """Journals of brokers with random links, starts, deaths, and records that are missing."""

    def __init__(self, root: Path, chance: Random) -> None:
        self.chance = chance
        self.makers = [JournalMaker(root / name) for name in "abcd"]
        self.ids = [""] * len(self.makers)
        for number in range(len(self.makers)):
            self._start(number, 0)

    def write(self) -> list[Path]:
        """Write them; returns some of the directories."""
        for at in range(1, 40):
            self._step(at)
        for maker in self.makers:
            maker.flush()
        places = [maker.directory for maker in self.makers]
        return sorted(self.chance.sample(places, self.chance.randint(1, len(places))))

    def _start(self, number: int, at: int) -> None:
        self.ids[number] = f"ID:{'abcd'[number]}-{at}"
        maker = self.makers[number]
        if number < 2:
            name = f"broker-{number}"
            told = {"broker": name, "replica": name, "brokerId": self.ids[number], "epoch": at}
            maker.line("event", at, event="start", **told)
        if maker.waiting:
            maker.flush()

    def _step(self, at: int) -> None:
        chance = self.chance
        if chance.random() < 0.1:
            self._start(chance.randrange(len(self.makers)), at)
        elif chance.random() < 0.3:
            self._bridge(at)
        else:
            self._travel(at)

    def _bridge(self, at: int) -> None:
        here, there = self.chance.sample(range(len(self.makers)), 2)
        if here >= 2:
            return
        connection = {"connection": f"ID:link-{at}"}
        told = {"bridge": f"to-{there}", "peer": f"broker-{there}", "peerId": self.ids[there]}
        direction = self.chance.choice(("in", "out", "both"))
        own = {"brokerId": self.ids[here], "broker": f"broker-{here}"}
        maker = self.makers[here]
        maker.line(
            "event", at, event="bridgeStarted", **connection, **told, **own, direction=direction
        )
        if self.chance.random() < 0.7:
            counts = {"forwarded": self.chance.randrange(9), "received": self.chance.randrange(9)}
            maker.line("event", at, event="bridgeCounted", **connection, **counts)

    def _travel(self, at: int) -> None:
        """Have a message go from broker to broker, perhaps back, perhaps to a dead letter queue."""
        chance, place = self.chance, self.chance.choice((queue("ORDERS"), topic("NEWS")))
        path: tuple[BrokerId, ...] = ()
        number = chance.randrange(len(self.makers))
        for hop in range(chance.randint(1, 5)):
            maker = self.makers[number]
            if chance.random() < 0.8:
                maker.add(at, at * 100 + hop, place, broker_path=path or None)
                if chance.random() < 0.3:
                    dead = {"original_destination": place, "broker_path": path or None}
                    maker.add(at, at * 100 + hop, queue("DLQ"), **dead)
                if chance.random() < 0.6:
                    maker.remove(at, place)
            if chance.random() < 0.2 and place.is_queue:
                maker.statistics(at * 100 + hop, consumers=chance.choice((0, 1)))
            path = (*path, BrokerId(self.ids[number]))
            number = chance.choice([each for each in range(len(self.makers)) if each != number])


@pytest.mark.parametrize("seed", range(SEEDS))
def test_random_networks_are_what_a_walk_in_order_tells(tmp_path, seed):
    directories = RandomNetwork(tmp_path, Random(seed)).write()
    rows = asked("FROM network_report", *directories)
    assert in_order(rows) == in_order(SequentialNetwork(directories).rows())


def test_random_networks_have_what_is_rare(tmp_path):
    seen: Counter[str] = Counter()
    for seed in range(SEEDS):
        directories = RandomNetwork(tmp_path / str(seed), Random(seed)).write()
        for row in SequentialNetwork(directories).rows():
            seen["absent"] += row["source_directory"] is None
            seen["stranded"] += row["stranded"] > 0
            seen["elected"] += row["source"] in "cd"
            seen["counted"] += row["forwarded"] is not None and row["messages"] > 0
    assert min(seen[each] for each in ("absent", "stranded", "elected", "counted")) > 0, seen


def test_the_page_has_a_picture_of_the_network(network):
    north, _, west, _ = network
    whole = page_of(reports_of(*network, names=["network"]), *network)
    picture = whole[whole.index('<div class="plot network">') : whole.index("</figure>")]
    assert picture.count('<g class="node">') == 4
    assert picture.count('<g class="arrow went">') == 2
    assert (
        "<title>south to west by to-west: 5 messages, 2 of them wait, 2 stranded</title>" in picture
    )
    assert picture.count('<g class="arrow idle">') == 3
    some = page_of(reports_of(north, west, names=["network"]), north, west)
    assert some.count('<g class="node absent">') == 1
    assert "without a journal: south" in some
