"""Cuts of a bridge and kills of its brokers, under load: nothing is lost, and little comes twice.

A message leaves the first broker when the second one has it on its disk. What was sent and not
confirmed goes again; ours knows it when it comes the second time.
"""

import itertools
import random
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple

import network_brokers
import pytest
from network_brokers import Member, Network, Relay, until
from network_scenarios import Way

import lockkeeper.client as client

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(900)]

PAIRS = (
    ("ours", "ours"),
    ("ours", "activemq"),
    ("activemq", "ours"),
    ("activemq", "activemq"),
    pytest.param(("ours", "activemq6"), marks=pytest.mark.thorough),
    pytest.param(("activemq6", "ours"), marks=pytest.mark.thorough),
)
KILLS = 3
TWENTY = ("bridge",) * 10 + ("near",) * 5 + ("far",) * 5
WINDOW = 1000
"""Most messages that a bridge, or a consumer, has in hand."""
PAUSE_SECONDS = 0.4
REST_SECONDS = 0.01
SENT_MIN = 100
FAILOVER = "?initialReconnectDelay=50&maxReconnectDelay=500"


@pytest.fixture(params=PAIRS, ids="-dials-".join)
def way(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Way]:
    """Return a bridge."""
    near, far = request.param
    if reason := network_brokers.missing(near, far):
        pytest.skip(reason)
    with Network(tmp_path_factory.mktemp("network")) as network:
        network.add(near, "near")
        network.add(far, "far")
        network.bridge("near", "far")
        yield Way(network.start(), "near", "far")


class Break(NamedTuple):
    """What broke, and from when until it was whole again, in seconds of the monotonic clock."""

    what: str
    begin: float
    end: float


class Load:
    """Sends numbers at one broker and takes them at the other until told to stop."""

    def __init__(self, way: Way, name: str) -> None:
        self.sent: list[str] = []
        self.found: defaultdict[str, list[float]] = defaultdict(list)
        """When each number came."""
        self._name = name
        self._way = way
        self._is_over = threading.Event()
        self._has_all = threading.Event()
        self._threads = [threading.Thread(target=each) for each in (self._send, self._take)]

    def __enter__(self) -> "Load":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(TimeoutError):
            until(lambda: len(self.sent) > SENT_MIN, "there is a load")
        self._is_over.set()
        self._threads[0].join()
        with suppress(TimeoutError):
            until(lambda: set(self.sent) <= set(self.found), "everything has come")
        self._has_all.set()
        self._threads[1].join()

    def _connected(self, broker: str) -> client.Connection:
        url = f"failover:({self._way.network[broker].url}){FAILOVER}"
        return client.connect(url, timeout=network_brokers.PATIENCE_SECONDS)

    def _send(self) -> None:
        with self._connected("near") as connection:
            sender = connection.session().producer(self._name)
            number = 0
            while not self._is_over.is_set():
                sender.send(str(number), timeout=network_brokers.PATIENCE_SECONDS)
                self.sent.append(str(number))
                number += 1
                time.sleep(REST_SECONDS)

    def _take(self) -> None:
        with self._connected("far") as connection:
            taker = connection.session().consumer(self._name)
            quiet = 0
            while quiet < 3:
                message = taker.receive(0.5)
                if message is not None:
                    self.found[str(message.body)].append(time.monotonic())
                    quiet = 0
                elif self._has_all.is_set():
                    quiet += 1

    def check(self, twice_most: int, record: Callable[[str, object], None]) -> None:
        """Assert that nothing was lost, and no more than *twice_most* came twice."""
        lost = sorted(set(self.sent) - set(self.found), key=int)
        twice = {body: len(times) for body, times in self.found.items() if len(times) > 1}
        record("sent", len(self.sent))
        record("twice", len(twice))
        assert lost == []
        assert len(self.sent) > SENT_MIN
        assert len(twice) <= twice_most, twice

    def check_repeats(self, reasons: Sequence[Break]) -> None:
        """Assert that a number came again only where one of the *reasons* lies in between."""
        for body, times in self.found.items():
            for before, after in itertools.pairwise(times):
                found = [each for each in reasons if before <= each.end and after >= each.begin]
                assert found, f"{body} came again for no reason: {times}"


def cut(relay: Relay, chance: random.Random) -> None:
    """Cut a bridge, and let it be made again."""
    relay.cut()
    time.sleep(PAUSE_SECONDS + chance.random())


def kill(member: Member, chance: random.Random) -> None:
    """Kill a broker, and start it again."""
    time.sleep(1 + chance.random())
    member.kill()
    member.start()


def knows_what_came(way: Way) -> bool:
    """Tell whether the broker at the end is ours."""
    return way.network["far"].kind == "ours"


@pytest.mark.parametrize("cuts", [8, pytest.param(30, marks=pytest.mark.thorough)])
def test_cuts_under_load(
    way: Way, cuts: int, record_property: Callable[[str, object], None]
) -> None:
    chance = random.Random(7)
    relay = way.network.relays["near", "far"]
    with Load(way, f"queue://{way.name()}") as load:
        for _ in range(cuts):
            cut(relay, chance)
    load.check(0 if knows_what_came(way) else 100, record_property)


@pytest.mark.parametrize("victim", ["near", "far"])
def test_kills_under_load(
    way: Way, victim: str, record_property: Callable[[str, object], None]
) -> None:
    chance = random.Random(11)
    with Load(way, f"queue://{way.name()}") as load:
        for _ in range(KILLS):
            kill(way.network[victim], chance)
    # A consumer's acknowledgements may be lost with its broker: then it gets some again.
    allowed = 0 if victim == "near" and knows_what_came(way) else 2_000
    load.check(allowed, record_property)


@pytest.mark.thorough
@pytest.mark.timeout(3600)
def test_twenty_cuts_and_kills_under_load(
    way: Way, record_property: Callable[[str, object], None]
) -> None:
    """Nothing is lost, whatever breaks in whatever order, and what comes twice has a reason.

    Where ours is at the end, it recognises all that a bridge repeats, after its own restarts, too.
    Then only the consumer repeats, whose acknowledgements a kill of its broker may lose.
    """
    chance = random.Random(19)
    breaks: list[Break] = []
    with Load(way, f"queue://{way.name()}") as load:
        for what in chance.sample(TWENTY, len(TWENTY)):
            time.sleep(chance.random())
            begin = time.monotonic()
            if what == "bridge":
                cut(way.network.relays["near", "far"], chance)
            else:
                kill(way.network[what], chance)
            breaks.append(Break(what, begin, time.monotonic()))
    reasons = [each for each in breaks if each.what == "far" or not knows_what_came(way)]
    load.check_repeats(reasons)
    load.check(len(reasons) * WINDOW, record_property)
