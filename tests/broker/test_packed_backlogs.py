"""A long backlog that is packed behaves as one that is not, whatever happens to it."""

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from lockkeeper.broker.policies.expiry import ExpiryPolicy
from lockkeeper.broker.policies.policy import DestinationPolicy
from lockkeeper.broker.purging import purge
from lockkeeper.broker.regions import body_cache, line, stretch
from lockkeeper.broker.regions.backlog import Backlog
from lockkeeper.broker.regions.line import Line
from lockkeeper.broker.regions.topic import Topic
from lockkeeper.broker.settings import BrokerSettings, MemoryUsage, SystemUsage
from lockkeeper.broker.subscriptions import topic
from lockkeeper.message.destination import parse_destination
from lockkeeper.store.kahadb import KahaDBStore
from lockkeeper.store.kahadb.audit import differences
from lockkeeper.store.packed import PackedRun

if TYPE_CHECKING:
    from conftest import Bench, Client

NAMES = ("Q", "P", "topic://T")
DURABLE = ("topic://T", "topic://T#2", "topic://T#3")
CONSUMERS = ("Q", "P", *DURABLE, "topic://T#passing")
STEPS = 160
SETTINGS = BrokerSettings(system_usage=SystemUsage(MemoryUsage(4_000)))
POLICIES = {
    "Q": DestinationPolicy(expiry=ExpiryPolicy(expire_messages_period=1000)),
    "P": DestinationPolicy(prioritized_messages=True),
}


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> Callable[[bool], None]:
    """A function that says whether backlogs are packed, in runs of four."""

    def choose(is_packing: bool) -> None:
        monkeypatch.setattr(line, "RUN_MESSAGES", 4)
        monkeypatch.setattr(line, "RUN_MESSAGES_MIN", 2)
        monkeypatch.setattr(stretch, "RUN_MESSAGES", 4)
        monkeypatch.setattr(line, "LINE_MESSAGES_MIN", 8 if is_packing else 1 << 60)
        monkeypatch.setattr(topic, "LINE_MESSAGES_MIN", 8 if is_packing else 1 << 60)
        monkeypatch.setattr(body_cache, "PACKED_AFTER", 1)

    return choose


class Settled:
    """A receipt that nobody waits for."""

    def settle(self) -> None:
        """Do nothing."""


class Play:
    """A broker, and what is done to it; `told` is everything that anybody saw."""

    def __init__(self, bench: "Bench", seed: int) -> None:
        self.bench = bench
        self.random = random.Random(seed)
        self.told: list[Any] = []
        self.packed = 0
        self.number = 0
        self.producer = bench.client("producer")
        self.clients: dict[str, tuple[Client, Any]] = {}
        for name in DURABLE:
            self.come(name)
            self.leave(name)

    def step(self) -> None:
        action = self.random.choices(
            (
                self.send,
                self.come,
                self.leave,
                self.acknowledge,
                self.browse,
                self.wait,
                self.purge,
            ),
            (8, 2, 2, 6, 1, 2, 0.3),
        )[0]
        of_consumers = (self.come, self.leave, self.acknowledge)
        name = self.random.choice(CONSUMERS if action in of_consumers else NAMES)
        self.told.append((action.__name__, name))
        action(name)
        self.bench.tick()
        self.look()

    def send(self, name: str) -> None:
        for _ in range(self.random.randrange(1, 30)):
            self.number += 1
            lifetime = self.random.choice((0, 0, 0, 1500, 60_000))
            self.producer.send(
                name,
                f"{self.number} " + "x" * 300,
                wait=self.random.random() < 0.3,
                persistent=self.random.random() < 0.9,
                priority=self.random.randrange(10),
                expiration=self.bench.now + lifetime if lifetime else 0,
            )

    def come(self, name: str) -> None:
        if name in self.clients:
            return
        client = self.bench.client(f"client-{name}")
        durable = {"subscription_name": "s"} if name in DURABLE else {}
        prefetch = self.random.choice((1, 5, 40))
        destination, *_ = name.split("#")
        self.clients[name] = client, client.consume(destination, prefetch=prefetch, **durable)

    def leave(self, name: str) -> None:
        if name in self.clients:
            self.take(name)
            self.clients.pop(name)[0].leave()

    def take(self, name: str) -> list[Any]:
        client, consumer = self.clients[name]
        deliveries = client.deliveries(consumer)
        self.told += [
            (name, delivery.message.key, delivery.redeliveries) for delivery in deliveries
        ]
        return deliveries

    def acknowledge(self, name: str) -> None:
        if name in self.clients:
            client, consumer = self.clients[name]
            self.take(name)
            held = list(consumer.dispatched.values())
            for reference in held[: self.random.randrange(len(held) + 1)]:
                client.acknowledge(consumer, reference.loaded)

    def browse(self, name: str) -> None:
        if "://" not in name:
            client = self.bench.client()
            browser = client.consume(name, prefetch=100_000, browser=True)
            self.told += [each.message.key for each in client.deliveries(browser)]
            client.leave()

    def wait(self, name: str) -> None:
        self.bench.tick(self.random.choice((1, 1000, 3000)))

    def purge(self, name: str) -> None:
        self.told.append(list(purge(self.bench.broker, parse_destination(name), Settled())))

    def look(self) -> None:
        """Note how much waits, where, and in which order."""
        for name in NAMES:
            region = self.bench.broker.registry.find(parse_destination(name))
            if region is None:
                continue
            backlogs: list[Backlog] = (
                [*region.durables, *region.volatiles] if isinstance(region, Topic) else [region]
            )
            for backlog in backlogs:
                self.told.append((name, backlog.depth(), len(list(backlog.waiting()))))
                peeked = [backlog.peek(each) for each in backlog.waiting()]
                self.told.append([each and each.key for each in peeked])
                for segment in backlog.segments():
                    self.packed += len(segment) if isinstance(segment, PackedRun) else 0
            self.told.append(vars_of(region.statistics))

    def drain(self) -> None:
        """Take everything that is left."""
        for name in CONSUMERS:
            self.come(name)
            while self.clients[name][1].dispatched:
                client, consumer = self.clients[name]
                self.take(name)
                for reference in list(consumer.dispatched.values()):
                    client.acknowledge(consumer, reference.loaded)
            self.take(name)
        self.look()
        self.told.append(self.bench.broker.memory.used)


def vars_of(statistics: Any) -> dict[str, Any]:
    names = ("enqueued", "dequeued", "dispatched", "expired", "redelivered")
    return {name: getattr(statistics, name) for name in names}


@pytest.fixture
def play(
    make_bench: "type[Bench]", tmp_path: Path, tiny: Callable[[bool], None]
) -> Iterator[Callable[..., Play]]:
    """A function that plays a seed with packing or without."""
    stores = []

    def played(seed: int, is_packing: bool) -> Play:
        tiny(is_packing)
        directory = tmp_path / f"{seed}-{is_packing}"
        directory.mkdir()
        stores.append(KahaDBStore(directory, file_bytes_max=1 << 16))
        bench = make_bench(stores[-1], settings=SETTINGS, **POLICIES)  # type: ignore[arg-type]
        playing = Play(bench, seed)
        for _ in range(STEPS):
            playing.step()
        playing.drain()
        live = sum(usage.live for usage in stores[-1]._file_references.files.values())
        playing.told.append((live, stores[-1].usage().spooled_bytes))
        return playing

    yield played
    for store in stores:
        store.close()


@pytest.mark.parametrize("seed", range(3))
def test_what_is_told_is_the_same(play: Callable[..., Play], seed: int) -> None:
    plain, packing = play(seed, False), play(seed, True)
    assert plain.packed == 0
    assert packing.packed > 1000
    for number, (expected, found) in enumerate(zip(plain.told, packing.told, strict=True)):
        assert found == expected, f"step {number}"


def test_a_browser_sees_what_ended_while_it_browsed(
    make_bench: "type[Bench]", tmp_path: Path, tiny: Callable[[bool], None]
) -> None:
    tiny(True)
    store = KahaDBStore(tmp_path, file_bytes_max=1 << 14)
    bench = make_bench(store, settings=SETTINGS)
    client, other = bench.client(), bench.client()
    for number in range(100):
        client.send("Q", f"{number:03}" + "x" * 300)
    assert isinstance(bench.queue("Q").ready, Line)
    browser = other.consume("Q", prefetch=10, browser=True)
    seen = other.texts(browser)
    list(purge(bench.broker, parse_destination("Q"), Settled()))
    bench.tick()
    for file in tmp_path.glob("db-*.log"):
        file.write_bytes(b"")
    for reference in list(browser.dispatched.values()):
        other.acknowledge(browser, reference.loaded)
    assert [text[:3] for text in seen] == [f"{number:03}" for number in range(10)]
    assert other.ends() == 1


@pytest.mark.parametrize("is_removed", [False, True], ids=["consumed", "removed"])
@pytest.mark.parametrize("is_persistent", [False, True])
def test_a_browser_goes_on_when_what_it_knew_has_gone_with_its_file(
    make_bench: "type[Bench]",
    tmp_path: Path,
    tiny: Callable[[bool], None],
    is_persistent: bool,
    is_removed: bool,
) -> None:
    tiny(True)
    store = KahaDBStore(tmp_path, file_bytes_max=1 << 14)
    bench = make_bench(store, settings=SETTINGS)
    client, other = bench.client(), bench.client()

    def send(numbers: range) -> None:
        for number in numbers:
            client.send("Q", f"{number:03}" + "x" * 300, persistent=is_persistent)

    send(range(6))
    browser = other.consume("Q", prefetch=2, browser=True)
    seen = other.texts(browser)
    send(range(6, 100))
    assert isinstance(bench.queue("Q").ready, Line)
    if is_removed:
        other.bench.broker.subscriptions.unsubscribe(browser, 0)
        browser = other.consume("Q", prefetch=2, browser=True)
        seen = other.texts(browser)
        bench.broker.destinations._forget(parse_destination("Q"))
        store.remove_destination(parse_destination("Q"), None)
    else:
        consumer = client.consume("Q", prefetch=1000)
        while consumer.dispatched:
            client.acknowledge(consumer, next(iter(consumer.dispatched.values())).loaded)
        assert bench.depth("Q") == 0
    bench.tick()
    for file in tmp_path.glob("db-*.log"):
        file.unlink()
    for _ in range(60):
        for reference in list(browser.dispatched.values()):
            other.acknowledge(browser, reference.loaded)
    assert [text[:3] for text in seen] == ["000", "001"]
    assert other.ends() == 1
    assert bench.broker.containment.records == {}


def test_a_queue_is_removed_without_unpacking_it(
    make_bench: "type[Bench]",
    tmp_path: Path,
    tiny: Callable[[bool], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tiny(True)
    store = KahaDBStore(tmp_path, file_bytes_max=1 << 14)
    bench = make_bench(store, settings=SETTINGS)
    client = bench.client()
    for number in range(200):
        client.send("Q", str(number) + "x" * 300, persistent=bool(number % 50))
    assert sum(usage.live for usage in store._file_references.files.values()) > 0
    unpacked: list[int] = []
    unpack = PackedRun._unpack

    def counted(run: PackedRun) -> object:
        unpacked.append(len(run))
        return unpack(run)

    monkeypatch.setattr(PackedRun, "_unpack", counted)
    bench.broker.destinations.remove(parse_destination("Q"), None)
    bench.tick()
    # Runs with what is in temporary files, too, are looked at one by one.
    assert sum(unpacked) <= 20
    assert sum(usage.live for usage in store._file_references.files.values()) == 0
    assert differences(tmp_path, store._file_references) == []
    assert bench.broker.memory.used == 0
    assert store.usage().spooled_bytes == 0


@pytest.mark.parametrize("others", [0, 1])
def test_a_durable_subscription_ends_without_unpacking_what_waits(
    make_bench: "type[Bench]",
    tmp_path: Path,
    tiny: Callable[[bool], None],
    monkeypatch: pytest.MonkeyPatch,
    others: int,
) -> None:
    tiny(True)
    store = KahaDBStore(tmp_path, file_bytes_max=1 << 14)
    bench = make_bench(store, settings=SETTINGS)
    producer = bench.client("producer")
    names = [f"reader-{number}" for number in range(1 + others)]
    for name in names:
        reader = bench.client(name)
        reader.consume("topic://T", subscription_name="s")
        reader.leave()
    for number in range(400):
        producer.send("topic://T", str(number) + "x" * 300)
    unpacked: list[int] = []
    unpack = PackedRun._unpack

    def counted(run: PackedRun) -> object:
        unpacked.append(len(run))
        return unpack(run)

    monkeypatch.setattr(PackedRun, "_unpack", counted)
    for name in names:
        assert sum(usage.live for usage in store._file_references.files.values()) > 0
        bench.broker.subscriptions.lasting.forget(name, "s", None)
        bench.tick()
    assert sum(unpacked) <= 20
    assert sum(usage.live for usage in store._file_references.files.values()) == 0
    assert differences(tmp_path, store._file_references) == []
    assert bench.broker.memory.used == 0
