"""Unmodified RocketMQ clients go on when the master of a pair is killed: nothing is lost."""

import subprocess
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import java_project
import pytest
import reference
import rocketmq_scenarios
from brokers import RunningBroker
from ports import free_port

pytestmark = [pytest.mark.interop, pytest.mark.slow]

VERSIONS = [
    pytest.param("4.9.8", id="4.9.8"),
    pytest.param("5.3.3", id="5.3.3", marks=pytest.mark.thorough),
]
TOPIC, QUEUES = "survivors", 4
SECONDS_MAX = 120
GROUPS = ("orderly", "concurrently")


class Pair:
    """Two brokers on one directory; the one that is not the master does not listen."""

    def __init__(self, directory: Path) -> None:
        self.ports = [free_port(), free_port()]
        self.brokers = [self._start(directory, number) for number in range(2)]

    def _start(self, directory: Path, number: int) -> RunningBroker:
        port, is_first = self.ports[number], number == 0
        command = reference.lockkeeper_command(directory / "data", port)
        own = directory / f"{number}"
        return RunningBroker("lockkeeper", port, own, command, waits=is_first)

    def is_role(self, number: int, role: str) -> bool:
        """Tell whether a broker has become `master` or `standby`."""
        return f"is {role}" in self.brokers[number].log.read_text()

    def stop(self) -> None:
        """End both."""
        for broker in self.brokers:
            broker.kill()


class Consumed(NamedTuple):
    """A message that a member of a group consumed."""

    member: int
    queue: int
    offset: int
    number: int


class Survivors:
    """The Java program, and what it has told: what was sent, and what each group consumed."""

    def __init__(self, version: str, names: str, directory: Path) -> None:
        directory.mkdir()
        home = f"-Duser.home={directory}"
        command = [*rocketmq_scenarios.JAVA, home, "-cp", rocketmq_scenarios.class_path(version)]
        command += ["dev.lockkeeper.rocketmq.Survivors", names, TOPIC, f"{QUEUES}"]
        self._out = directory / "told"
        with self._out.open("wb") as out, (directory / "log").open("wb") as log:
            self._process = subprocess.Popen(
                [*command, reference.BROKER_NAME], stdin=subprocess.PIPE, stdout=out, stderr=log
            )

    def _lines(self) -> list[list[str]]:
        told = self._out.read_text()
        return [line.split() for line in told[: told.rfind("\n") + 1].splitlines()]

    def sent(self) -> list[tuple[int, int, int]]:
        """Return queue, offset and number of each message that was answered with SEND_OK."""
        return [
            (int(queue), int(offset), int(number))
            for kind, queue, offset, number in (line for line in self._lines() if len(line) == 4)
            if kind == "sent"
        ]

    def unsure(self) -> set[tuple[int, int]]:
        """Return queue and number of messages that had no answer, and were sent again."""
        return {(int(line[1]), int(line[2])) for line in self._lines() if line[0] == "unsure"}

    def consumed(self, group: str) -> list[Consumed]:
        """Return what the members of a group consumed, in the order of time."""
        return [Consumed(*map(int, line[1:])) for line in self._lines() if line[0] == group]

    def end_sending(self) -> None:
        """Have it send no more; all that was begun is answered afterwards."""
        assert self._process.stdin is not None
        self._process.stdin.write(b"\n")
        self._process.stdin.flush()
        eventually(lambda: ["ended"] in self._lines())

    def stop(self) -> None:
        """End the program."""
        self._process.kill()
        self._process.wait()


def eventually(condition: Callable[[], bool]) -> None:
    """Wait until something is true."""
    deadline = time.monotonic() + SECONDS_MAX
    while not condition():
        assert time.monotonic() < deadline, "it did not come to that in time"
        time.sleep(0.2)


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    reason = java_project.missing()
    if reason:
        pytest.skip(reason)
    running = Pair(tmp_path)
    yield running
    running.stop()


@pytest.fixture(params=VERSIONS)
def survivors(request: pytest.FixtureRequest, pair: Pair, tmp_path: Path) -> Iterator[Survivors]:
    names = ";".join(f"127.0.0.1:{port}" for port in pair.ports)
    program = Survivors(request.param, names, tmp_path / "clients")
    yield program
    program.stop()


def test_clients_lose_nothing_when_the_master_is_killed(pair: Pair, survivors: Survivors) -> None:
    eventually(lambda: pair.is_role(1, "standby"))
    eventually(lambda: all(len(survivors.consumed(group)) > 500 for group in GROUPS))
    before = len(survivors.sent())
    pair.brokers[0].kill()
    eventually(lambda: len(survivors.sent()) > before + 500)
    assert pair.is_role(1, "master")
    survivors.end_sending()
    sent, unsure = survivors.sent(), survivors.unsure()
    assert unsure, "nobody noticed that the master was killed"
    places = {(queue, offset): number for queue, offset, number in sent}
    assert len(places) == len(sent)
    for group in GROUPS:
        eventually(partial(_has_all, places, survivors, group))
        _check_consumed(places, unsure, survivors.consumed(group))
    _check_order(survivors.consumed("orderly"))


def _has_all(places: dict[tuple[int, int], int], survivors: Survivors, group: str) -> bool:
    """Tell whether a group has consumed all messages that were answered."""
    consumed = {(each.queue, each.offset) for each in survivors.consumed(group)}
    return places.keys() <= consumed


def _check_consumed(
    places: dict[tuple[int, int], int], unsure: set[tuple[int, int]], consumed: list[Consumed]
) -> None:
    """Check that the group has what was sent, where it was sent, and nothing else."""
    seen = {(each.queue, each.offset): each.number for each in consumed}
    for place, number in seen.items():
        assert places.get(place, number) == number
    unanswered = {(queue, seen[queue, offset]) for queue, offset in seen.keys() - places.keys()}
    assert unanswered <= unsure
    for queue in range(QUEUES):
        offsets = [offset for place, offset in seen if place == queue]
        numbers = {number for (place, _), number in seen.items() if place == queue}
        assert sorted(offsets) == list(range(len(offsets)))
        assert numbers == set(range(max(numbers) + 1))


def _check_order(consumed: list[Consumed]) -> None:
    """Check that each partition was consumed without a gap; it may have gone back to go on."""
    by_queue: defaultdict[int, list[int]] = defaultdict(list)
    for each in consumed:
        by_queue[each.queue].append(each.offset)
    for offsets in by_queue.values():
        assert offsets[0] == 0
        assert all(after <= before + 1 for before, after in pairwise(offsets))
