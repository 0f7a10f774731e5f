"""One seed of a network: up to five brokers under load while bridges are cut and brokers killed.

At the end everything is healed, one broker has the only consumers, and three things must hold.
Nothing is lost: what a broker has confirmed is consumed. Nothing goes in circles: brokers without
consumers fall silent, and no message leaves a broker more often than its consumers moved. Nothing
is stranded: all of it comes to where the consumers are, in bounded time.
"""

import json
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from simulation.broker_network import QUICK, SHAPES, SILENCE_MS, BrokerNetwork, Member, links_of
from simulation.course import Course, Options
from simulation.hub import SECOND
from simulation.pair import FIRST_PORT

import lockkeeper.client as client
from lockkeeper.broker.regions.queue import Queue
from lockkeeper.client.errors import MessagingError
from lockkeeper.message.destination import queue

QUEUES = ("ONE", "TWO", "ALWAYS")
ALWAYS = QUEUES[2]
"""Forwarded by every bridge, whether anybody consumes it or not."""
FAULTS = ("cut", "reset", "freeze", "kill", "power")
SETTLE_SECONDS_MAX = 120
DRAIN_SECONDS_MAX = 240
SILENT_SECONDS = 20
MOVES_MAX = 40
CLIENT_TIMEOUT = 20.0


class Consumed(NamedTuple):
    """A message at a broker, after it has left so many.

    `names` tells where it was given an id of its own on its way: at brokers that it had been at.
    """

    text: str
    place: str
    hops: int
    names: tuple[tuple[int, str], ...]

    @classmethod
    def of(cls, message: "client.ReceivedMessage", place: str) -> "Consumed":
        """Return what a message is that is consumed at a broker."""
        path = [each.value for each in message.fields.broker_path or ()]
        names = tuple((at, each) for at, each in enumerate(path) if each in path[:at])
        return cls(str(message.body), place, len(path), names)


@dataclass
class Books:
    """What clients know: `confirmed` by a broker, `consumed` in a transaction that was committed.

    Of what is `doubtful` a commit had no answer. `counts` are for whoever looks at results.
    """

    confirmed: set[str] = field(default_factory=set)
    consumed: Counter[Consumed] = field(default_factory=Counter)
    doubtful: set[str] = field(default_factory=set)
    problems: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)


class NetworkLife(Course):
    """One run of one seed with a network."""

    def __init__(self, seed: int, root: Path, options: Options) -> None:
        super().__init__(f"network {seed}", seed, root, options)
        chance = self.chance
        self.world.network.slowness = chance.choice((1, 5, 20))
        self.books = Books()
        self.shape = chance.choice(SHAPES)
        self.links = links_of(self.shape, chance.randint(2, 5))
        self.network = BrokerNetwork(self.world, root, self._specs())
        self.clients = self.world.start("clients")
        self.faults: list[str] = []
        self._is_over = False
        self._numbers = 0

    @property
    def log(self) -> list[str]:
        """What the brokers have logged, and what happened to them."""
        return self.network.log

    def told(self) -> dict[str, Any]:
        """Return what is told of the run beside what went wrong."""
        clients = [f"c{number + 1}" for number in range(self._numbers)]
        shape = f"{self.shape} of {len(self.network.members)}"
        return {"faults": self.faults, "shape": shape, "actors": clients}

    def _specs(self) -> list[dict[str, Any]]:
        chance = self.chance
        count = 1 + max(max(link) for link in self.links)
        always = chance.random() < 0.5
        options: dict[str, Any] = {
            "networkTTL": count,
            "decreaseNetworkConsumerPriority": chance.random() < 0.5,
            "suppressDuplicateQueueSubscriptions": chance.random() < 0.3,
            "conduitSubscriptions": chance.random() < 0.8,
            "prefetchSize": chance.choice((1, 10, 1000)),
        }
        if always:
            options["staticallyIncludedDestinations"] = [{"name": ALWAYS, "kind": "Queue"}]
        connectors: list[list[dict[str, Any]]] = [[] for _ in range(count)]
        for near, far in self.links:
            is_duplex = chance.random() < 0.6
            ends = [(near, far)] if is_duplex else [(near, far), (far, near)]
            for source, target in ends:
                wire = f"wireFormat.maxInactivityDuration={SILENCE_MS}"
                uri = f"static:(tcp://127.0.0.1:{FIRST_PORT + target}?{wire})?{QUICK}"
                name = f"to-{target}"
                connectors[source].append(
                    {"name": name, "uri": uri, "duplex": is_duplex, **options}
                )
        replays = {
            "replayWhenNoConsumers": True,
            "replayDelay": chance.choice(("0s", "0s", "500ms")),
        }
        policies = [{"match": ">", "kind": "Queue", "networkBridgeFilter": replays}]
        journal = {"fileBytes": "256Ki", "cleanupInterval": "1s"}
        return [
            {"networkConnectors": each, "destinationPolicies": policies, "journal": journal}
            for each in connectors
        ]

    # The course of it

    def _begin(self) -> None:
        self.network.start()
        self._settle()

    def _settle(self) -> None:
        hub = self.world.hub
        end = hub.now + SETTLE_SECONDS_MAX * SECOND
        whole = hub.run(self.network.is_whole, end)
        assert whole, f"the network is not whole after {SETTLE_SECONDS_MAX} s"

    def _round(self, number: int) -> None:
        hub = self.world.hub
        seconds = self.chance.uniform(1, 5)
        self.network.note(f"round {number} of {seconds:.2f} s")
        self._is_over = False
        for work, most in ((self._produce, 3), (self._consume, 4)):
            for _ in range(self.chance.randint(1, most)):
                self._start(work)
        begun = hub.now
        for _ in range(self.chance.choice((0, 1, 2, 4))):
            kind, at = self.chance.choice(FAULTS), self.chance.uniform(0.1, seconds)
            self.planned += 1
            if self.planned - 1 not in self.options.skipped:
                hub.call_at(begun + int(at * SECOND), self._doing(kind))
        hub.run(lambda: False, begun + int(seconds * SECOND))
        self._is_over = True
        self._heal()
        self._replace_clients()
        self._settle()

    def _start(self, work: Callable[[random.Random, str], None]) -> None:
        """Have *work* done by a client of a broker, by another one when it breaks."""
        self._numbers += 1
        chance = random.Random(f"{self.seed} client {self._numbers}")
        name = f"c{self._numbers}"
        if name in self.options.silenced:
            return

        def go_on() -> None:
            hub = self.world.hub
            while not self._is_over:
                try:
                    work(chance, name)
                except (MessagingError, OSError) as error:
                    self.network.note(f"{name}: {error!r}")
                hub.sleep(SECOND // 5)

        self.world.hub.spawn(self.clients, go_on)

    def _produce(self, chance: random.Random, name: str) -> None:
        """Send to one broker until it is gone, or for a while."""
        member = chance.choice(self.network.members)
        with client.connect(member.url, timeout=CLIENT_TIMEOUT) as connection:
            producer = connection.session().producer()
            for _ in range(chance.randint(1, 60)):
                if self._is_over:
                    return
                self.books.counts["sent"] += 1
                text = f"{name}-{self.books.counts['sent']}"
                producer.send(text, destination=f"queue://{chance.choice(QUEUES)}")
                self.books.confirmed.add(text)
                self.world.hub.sleep(int(chance.random() * SECOND / 30))

    def _consume(self, chance: random.Random, name: str) -> None:
        """Consume at one broker for a while, in transactions."""
        end = self.world.hub.now + int(chance.uniform(0.1, 2) * SECOND)
        member = chance.choice(self.network.members)
        with client.connect(member.url, timeout=CLIENT_TIMEOUT) as connection:
            session = connection.session(transacted=True)
            consumer = session.consumer(
                f"queue://{chance.choice(QUEUES)}", prefetch=chance.choice((1, 10, 1000))
            )
            while self.world.hub.now < end and not self._is_over:
                self._take(member, session, consumer, chance.randint(1, 5))

    def _take(self, member: Member, session: Any, consumer: Any, most: int) -> None:
        """Consume up to so many messages in one transaction."""
        taken: list[Consumed] = []
        for _ in range(most):
            message = consumer.receive(0.2)
            if message is None:
                break
            taken.append(Consumed.of(message, member.name))
            self._check_path(str(message.body), message.fields.broker_path or ())
        if not taken:
            return
        self.books.doubtful.update(each.text for each in taken)
        session.commit()
        self.books.doubtful.difference_update(each.text for each in taken)
        self.books.consumed.update(taken)
        self.books.counts["consumed"] += len(taken)

    def _check_path(self, text: str, path: Any) -> None:
        """See that a message has not gone in circles: between two moves nothing comes back."""
        longest = max(Counter(each.value for each in path).values(), default=0)
        self.books.counts["longest"] = max(self.books.counts["longest"], longest)
        if longest > MOVES_MAX:
            self.books.problems.append(f"{text} went in circles: it left a broker {longest} times")

    # What goes wrong

    def _doing(self, kind: str) -> Callable[[], None]:
        def do() -> None:
            self.faults.append(f"{kind} at {self.world.hub.now / SECOND:.3f}")
            self.network.note(f"FAULT {kind}")
            getattr(self, f"_do_{kind}")()

        return do

    def _member(self) -> Member:
        return self.chance.choice(self.network.members)

    def _do_cut(self) -> None:
        """Two brokers do not reach each other, and nobody says so."""
        near, far = self.chance.choice(self.links)
        one, other = (self.network.members[each].process for each in (near, far))
        if one is not None and other is not None:
            self.world.network.cut(one, other)
            self.world.hub.call_later(
                int(self.chance.uniform(0.5, 6) * SECOND), self.world.network.heal
            )

    def _do_reset(self) -> None:
        """Some connections of a broker break for both sides."""
        process = self._member().process
        if process is not None:
            self.world.network.reset_some(process, self.chance.random())

    def _do_freeze(self) -> None:
        """SIGSTOP for some seconds, and on it goes."""
        process = self._member().process
        if process is not None:
            self.world.hub.stop(process, int(self.chance.uniform(0.1, 5) * SECOND))

    def _do_kill(self) -> None:
        """SIGKILL."""
        process = self._member().process
        if process is not None:
            self.world.hub.kill(process)

    def _do_power(self) -> None:
        """Every broker stops, and what was not synced may be gone."""
        for member in self.network.members:
            if member.process is not None:
                self.world.hub.kill(member.process)
        self.world.disk.cut_power()

    def _heal(self) -> None:
        self.world.network.heal()

    def _replace_clients(self) -> None:
        """End all clients: their system closes their sockets."""
        self.world.hub.kill(self.clients)
        self.clients = self.world.start("clients")

    # The end

    def _end(self) -> None:
        self._check_silence()
        places = {name: self.chance.choice(self.network.members) for name in QUEUES}
        self._is_over = False
        for name, member in places.items():
            self._drain(name, member)
        hub = self.world.hub
        hub.run(self._is_drained, hub.now + DRAIN_SECONDS_MAX * SECOND)
        self._is_over = True
        self._check_stranded()
        self._check_books()

    def _drain(self, name: str, member: Member) -> None:
        """Have everything of a queue consumed at one broker."""

        def drain() -> None:
            hub = self.world.hub
            while not self._is_over:
                try:
                    with client.connect(member.url, timeout=CLIENT_TIMEOUT) as connection:
                        session = connection.session(transacted=True)
                        consumer = session.consumer(f"queue://{name}")
                        while not self._is_over:
                            self._take(member, session, consumer, 20)
                except (MessagingError, OSError) as error:
                    self.network.note(f"draining {name}: {error!r}")
                    hub.sleep(SECOND // 2)

        self.network.note(f"{name} is drained at {member.name}")
        self.world.hub.spawn(self.clients, drain)

    def _waiting(self) -> dict[str, int]:
        """Return how many messages wait or are held, by broker and queue."""
        found = {}
        for member in self.network.members:
            broker = member.broker
            for name in QUEUES if broker is not None else ():
                assert broker is not None
                region = broker.registry.find(queue(name))
                if isinstance(region, Queue) and (count := region.depth() + region.in_flight()):
                    found[f"{name} at {member.name}"] = count
        return found

    def _is_drained(self) -> bool:
        return self.network.is_whole() and not self._waiting()

    def _check_silence(self) -> None:
        """See that messages stay where they are while nobody consumes."""
        hub = self.world.hub
        self._settle()
        hub.run(lambda: False, hub.now + SILENT_SECONDS * SECOND)
        before = self._moves()
        hub.run(lambda: False, hub.now + SILENT_SECONDS * SECOND)
        moved = self._moves() - before
        if moved:
            count = moved.total()
            self.books.problems.append(
                f"messages go in circles: {count} moved in {SILENT_SECONDS} s without a consumer"
            )

    def _moves(self) -> Counter[str]:
        found: Counter[str] = Counter()
        for member in self.network.members:
            broker = member.broker
            for name in QUEUES if broker is not None else ():
                assert broker is not None
                region = broker.registry.find(queue(name))
                if isinstance(region, Queue):
                    found[f"{name} at {member.name}"] = region.statistics.enqueued
        return found

    def _check_stranded(self) -> None:
        """See that nothing is left anywhere."""
        if left := self._waiting():
            self.books.problems.append(f"messages are stranded: {json.dumps(left)}")

    def _check_books(self) -> None:
        """See that all that was confirmed was consumed, and no more often than it may be.

        What had no confirmation when a bridge was lost may be consumed elsewhere, too. But no
        broker takes it twice after the same number of brokers, unless it was started anew: then it
        has forgotten what its consumers took before it was ever written. Nor does it know copies
        of which one was given another id on its way.
        """
        books = self.books
        lost = books.confirmed - {each.text for each in books.consumed} - books.doubtful
        if lost:
            count, some = len(lost), sorted(lost)[:3]
            books.problems.append(f"{count} messages are lost, {some} among them")
        anew = {member.name for member in self.network.members if member.starts}
        twice = [
            f"{each.text} at {each.place}"
            for each, count in books.consumed.items()
            if count > 1 and each.place not in anew
        ]
        if twice:
            books.problems.append(f"{len(twice)} messages came twice, {twice[:3]} among them")
