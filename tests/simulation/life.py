"""One seed: a pair under load while things go wrong, then everything is compared with the books.

Rounds of load and faults are followed by an audit: all faults end, a master must be there within
bounded time, and what it holds must be exactly what it answered for. At the end everything is
consumed, and nothing may be left: neither messages, nor memory, nor files.
"""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from simulation import clients, crowd, damage, listeners
from simulation.books import make_books
from simulation.course import Course, Options
from simulation.ending import Ending
from simulation.faults import ENDS, OF_A_TAKE_OVER, Fault, Faults
from simulation.hub import SECOND
from simulation.install import TESTS
from simulation.pair import SERVICE_PORT, Pair
from simulation.progress import Progress
from simulation.watchers import Lateness, Recounts, Steadiness, Writers

from lockkeeper.broker.scheduling.job import JOBS
from lockkeeper.broker.scheduling.job_queue import JobQueue
from lockkeeper.server.engine import Engine
from lockkeeper.store.kahadb.store import KahaDBStore

ACTORS = (
    "Producer",
    "TopicProducer",
    "TransactedProducer",
    "IndividualConsumer",
    "EagerConsumer",
    "Forwarder",
    "ForwardedConsumer",
    "XAWorker",
    "CalmProducer",
    "CalmConsumer",
    "Mover",
    "BulkSender",
    "VirtualPublisher",
    "CopyConsumer",
    "Vandal",
    "Splitter",
    "Fanner",
    "DelayedProducer",
    "ExpiringProducer",
    "AnyConsumer",
    "Remover",
    "Talker",
)
BACKLOG_MAX = 150
SETTLE_SECONDS_MAX = 300
AUDIT_SECONDS_MAX = 200
CLOSE_SECONDS_MAX = 200
SLOW_SECONDS_MAX = 5
DAMAGED = 0.15
"""So many lives end with damage on the disk."""
DISTURBED = 0.3
"""Before so many rounds a take-over is disturbed."""


class Life(Course):
    """One run of one seed with a pair."""

    def __init__(self, seed: int, root: Path, options: Options) -> None:
        super().__init__(f"life {seed}", seed, root, options)
        chance = self.chance
        self.world.network.slowness = chance.choice((5, 20, 60))
        # Modules of other tests, in which others here replace a part.
        self.wire = self.world.load("wire", TESTS / "interop/wire.py")
        self.ledger = self.world.load("ledger", TESTS / "crash/ledger.py")
        self.load = self.world.load("load", TESTS / "crash/load.py")
        self.audit = self.world.load("audit", TESTS / "crash/audit.py")
        self.load.BACKLOG_MAX = BACKLOG_MAX
        self.load.QUEUES = (*self.load.QUEUES, *clients.QUEUES, *crowd.QUEUES)
        # What moves by itself is looked at where it comes from first: so it is never overlooked.
        self.audit.QUEUES = (crowd.EXPIRING, *self.load.QUEUES)
        self.load.Talker = listeners.make_talker(self.load)
        self.modules = {"wire": self.wire, "ledger": self.ledger}
        self.books = make_books(self.ledger)
        directory = root / "disk" / "data"
        self._is_tight = chance.random() < 0.3
        self.pair = Pair(self.world, directory, root, self._spec(), chance.random() < 0.6)
        self.pair.on_new_master = self.books.new_master
        self.pair.cluster.slowness = chance.choice((1, 20))
        self.clients = self.world.start("clients")
        self.faults = Faults(self)
        self.writers = Writers(self)
        self.recounts = Recounts(self)
        self.lateness = Lateness(self)
        self.progress = Progress(self)
        self._crowd: list[Any] = []
        self._generation = 0

    def _spec(self) -> dict[str, Any]:
        chance = self.chance
        file_bytes = chance.choice(("64Ki", "64Ki", "256Ki"))
        interval = chance.choice(("100ms", "1s"))
        return {
            "journal": {
                "fileBytes": file_bytes,
                "cleanupInterval": interval,
                "compactAcksAfterNoGC": 1 if interval == "100ms" else 10,
                "compactAcksIgnoresStoreGrowth": interval == "100ms",
            },
            "locker": {"acquireInterval": "200ms", "keepAlivePeriod": "200ms"},
            "destinationPolicies": self.policies(),
            "scheduler": {"enabled": True},
            "compositeDestinations": [
                {"name": crowd.FAN, "forwardTo": [{"queue": each} for each in crowd.FANNED]}
            ],
            "systemUsage": {
                "memoryUsage": {"limit": chance.choice(("1Mi", "64Mi"))},
                "tempUsage": {"limit": "16Mi"},
                "storeUsage": {"limit": "64Mi"},
            },
        }

    def policies(self) -> list[dict[str, Any]]:
        """Return policies: those of the beginning, or others for a reload."""
        chance = self.chance
        # Bodies leave the memory, and are read back, all the time; or nearly never.
        mark = 1 if self._is_tight else chance.choice((50, 70, 90))
        usual = {"flow": {"cursorMemoryHighWaterMark": mark}, "recorded": chance.random() < 0.2}
        return [
            {"match": ">", **usual},
            # What vandals send is no matter of the books; its dead letters are kept apart.
            {"match": clients.VANDALISED, "deadLetters": {"strategy": "Individual"}, **usual},
            {"match": crowd.EXPIRING, "expiry": {"expireMessagesPeriod": "1s"}, **usual},
        ]

    def told(self) -> dict[str, Any]:
        """Return what is told of the run beside what went wrong."""
        return {"faults": self.faults.done, "lease": self.pair.has_lease, "actors": ACTORS}

    @property
    def log(self) -> list[str]:
        """What the brokers have logged, and what happened to them."""
        return self.pair.log

    # The course of it

    def _begin(self) -> None:
        self.pair.start()
        self.in_a_thread("subscribe", self._subscribe)

    def _subscribe(self) -> None:
        """Make what must be there before the first message: subscriptions, queues of copies."""
        self.audit.subscribe(SERVICE_PORT)
        listeners.subscribe(self)
        for name in clients.COPIES:
            with self.wire.Wire(SERVICE_PORT) as connection:
                connection.consumer(wire_queue(name))
                connection.leave()

    def _end(self) -> None:
        """Do everything that is left to do; or find damage in the midst of life."""
        if self.options.keep is not None:
            self._leave(self.options.keep)
        elif self.chance.random() < DAMAGED and (harm := damage.spoil(self)):
            damage.survive(self, harm)
        else:
            Ending(self).run()

    def _leave(self, place: Path) -> None:
        """End both brokers cleanly, and copy the directory to where others look at it.

        The books take what is scheduled for what is there: it has to come before.
        """
        Ending(self).let_time_pass()
        hub = self.world.hub
        self.pair.is_running = False
        for replica in self.pair.replicas:
            replica.terminate()
        hub.run(lambda: not self.pair.processes(), hub.now + SETTLE_SECONDS_MAX * SECOND)
        shutil.copytree(self.pair.directory, place / "kahadb")
        # ActiveMQ has a subscription to a wildcard as one to each of its topics.
        books = {
            name: held for name, held in self.books._live.items() if name not in listeners.PLACES
        }
        (place / "books.json").write_text(json.dumps(books))

    def read_all(self) -> dict[str, list[str]]:
        """Return what all queues hold."""
        found: dict[str, list[str]] = {}

        def read() -> None:
            for name in self.load.QUEUES:
                with self.wire.Wire(SERVICE_PORT) as connection:
                    messages = connection.browse(wire_queue(name))
                found[name] = [str(message.message_id) for message in messages]
            found[crowd.LATER] = crowd.with_scheduled(*self._look_later())

        self.in_a_thread("reading", read)
        # What is over is not shown, and what it becomes is told elsewhere.
        del found[crowd.EXPIRING]
        return found

    def _round(self, number: int) -> None:
        hub = self.world.hub
        seconds = self.chance.uniform(0.5, 3)
        self.pair.note(f"round {number} of {seconds:.2f} s")
        self.expect_expiry()
        if self.chance.random() < DISTURBED:
            self._disturb()
        steady = Steadiness(self)
        stop = self._start_crowd(number)
        base = hub.now
        faults = self.faults.plan(self.chance.choice((0, 1, 1, 2, 3, 5)), seconds)
        self._expect(faults)
        hub.run(lambda: False, base + int(seconds * SECOND))
        stop()
        self.faults.heal()
        steady.check({each.kind for each in faults})
        self._replace_clients()
        self._restart(self.chance.choice(("not", "kill", "terminate", "power")))
        self.settle()
        self.audit_all()

    def _expect(self, faults: list[Fault]) -> None:
        """Have faults happen from now on, but for those that are skipped."""
        hub = self.world.hub
        for fault in faults:
            self.planned += 1
            if self.planned - 1 not in self.options.skipped:
                hub.call_at(hub.now + int(fault.at * SECOND), self._doing(fault))

    def _disturb(self) -> None:
        """Have the pair take over while more goes wrong, and nobody works."""
        hub = self.world.hub
        seconds = self.chance.uniform(2, 20)
        self._expect(self.faults.plan(1, 0.1, ENDS))
        self._expect(self.faults.plan(self.chance.choice((0, 1, 2, 3)), seconds, OF_A_TAKE_OVER))
        hub.run(lambda: False, hub.now + int(seconds * SECOND))
        self.faults.heal()
        self.settle()

    def audit_all(self) -> None:
        """Compare everything that a master has with the books."""

        def audit() -> None:
            self.books.look_later = self._look_later
            self.books.heard = listeners.read(self)
            self.audit.audit(self.books, SERVICE_PORT, self.chance)

        self.in_a_thread("audit", audit)

    def _look_later(self) -> tuple[list[str], list[str]]:
        """Return the ids of scheduled messages, and of those that have come.

        What comes between the two looks is in both; the other way round it would be in none.
        """
        jobs = self._jobs()
        with self.wire.Wire(SERVICE_PORT) as connection:
            return jobs, [
                str(each.message_id) for each in connection.browse(wire_queue(crowd.LATER))
            ]

    def _jobs(self) -> list[str]:
        """Return the ids of scheduled messages; nobody but the broker can browse those."""
        engine = self.engine()
        if engine is None:
            raise ConnectionRefusedError("no master that could be asked for what is scheduled")
        jobs = engine.broker.registry.find(JOBS)
        assert isinstance(jobs, JobQueue)
        return [job.identifier for job, _ in jobs.jobs()]

    def engine(self) -> Engine | None:
        """Return what drives the master's broker, None while there is none."""
        master = self.pair.master()
        return None if master is None or master.broker is None else master.broker._engine

    def expect_expiry(self) -> None:
        """Say that what waits with a time to live may end from now on."""
        self.books.expect_doubtful()
        names = self.books._live.get(crowd.EXPIRING, [])
        crowd.expect_expiry(self.ledger, self.books, names)

    def _doing(self, fault: Fault) -> Callable[[], None]:
        return lambda: self.faults.carry_out(fault)

    def _start_crowd(self, number: int) -> Callable[[], None]:
        """Start actors, and others in the place of those whose connection breaks."""
        hub = self.world.hub
        is_over = False
        wanted: list[tuple[str, Callable[[str], Any]]] = []
        load, books = self.load, self.books

        def consumer_of(kind: Any, client: str) -> Callable[[str], Any]:
            return lambda name: kind(books, SERVICE_PORT, name, client)

        for kind in ACTORS:
            if self.chance.random() < 0.5:
                wanted.append((kind, self._maker(kind)))
        for subscriber in load.SUBSCRIBERS:
            if self.chance.random() < 0.7:
                wanted.append((subscriber, consumer_of(load.DurableConsumer, subscriber)))
        listener = listeners.make_listener(load)
        for name in listeners.attending(self.chance):
            wanted.append((name, consumer_of(listener, name)))
        wanted = [each for each in wanted if each[0] not in self.options.silenced]
        current: dict[int, Any] = {}

        def watch() -> None:
            if is_over:
                return
            for index, (_, make) in enumerate(wanted):
                actor = current.get(index)
                if actor is None or not actor.is_alive():
                    self._generation += 1
                    actor = current[index] = make(f"{self.seed}-{number}-{self._generation}")
                    hub.outside, outside = self.clients, hub.outside
                    actor.start()
                    hub.outside = outside
            hub.call_later(SECOND // 3, watch)

        watch()

        waits = self.chance.random() < 0.2

        def stop() -> None:
            nonlocal is_over
            is_over = True
            for actor in current.values():
                actor.stopping.set()
            if waits:
                self.faults.heal()
                self._await_programs(list(current.values()))

        return stop

    def _await_programs(self, actors: list[Any]) -> None:
        """See that programs which are told to stop close their connections, and end."""
        hub = self.world.hub
        programs = [each for each in actors if isinstance(each, clients.Program)]
        end = hub.now + CLOSE_SECONDS_MAX * SECOND
        if not hub.run(lambda: not any(each.is_alive() for each in programs), end):
            names = [each.name for each in programs if each.is_alive()]
            hub.problem(f"{names} do not end within {CLOSE_SECONDS_MAX} s")

    def _restart(self, how: str) -> None:
        """End both brokers, or not."""
        hub = self.world.hub
        # What was asked of a broker that lives on may still be carried out.
        hub.run(lambda: False, hub.now + SECOND // 2)
        hub.run(lambda: not self._writes(), hub.now + SLOW_SECONDS_MAX * SECOND)
        self.books.expect_order(how != "not")
        if how == "power":
            self.faults.cut_power()
        elif how == "kill":
            for process in self.pair.processes():
                hub.kill(process)
        elif how == "terminate":
            for replica in self.pair.replicas:
                replica.terminate()
        if how != "not":
            self.pair.note(f"both end: {how}")

    def _writes(self) -> bool:
        """Tell whether a master waits for its disk: what it was asked may come of that yet."""
        engine = self.engine()
        if engine is None:
            return False
        assert isinstance(engine.store, KahaDBStore)
        return engine.store._commit.is_writing

    def _maker(self, kind: str) -> Callable[[str], Any]:
        if hasattr(self.load, kind):
            return lambda name: getattr(self.load, kind)(self.books, SERVICE_PORT, name)
        made = getattr(crowd, kind, None) or getattr(clients, kind)
        return lambda name: made(self.modules, self.books, name)

    def _replace_clients(self) -> None:
        """End all clients: they say nothing more, and their system closes their sockets."""
        self.world.hub.kill(self.clients)
        self.clients = self.world.start("clients")
        self.progress.forget_clients()

    def settle(self) -> None:
        """Wait until there is a master again."""
        hub = self.world.hub
        end = hub.now + SETTLE_SECONDS_MAX * SECOND
        found = hub.run(self.serves, end)
        assert found, f"no master after {SETTLE_SECONDS_MAX} s: {self.pair.endings[-3:]}"

    def serves(self) -> bool:
        """Tell whether there is a master that lets clients in."""
        return self.pair.master() is not None and bool(self.world.network._listening)

    def in_a_thread(self, name: str, work: Callable[[], None]) -> None:
        """Do something as a client, and wait until it is done."""
        hub = self.world.hub
        done: list[bool] = []
        failed: list[BaseException] = []

        def attempt() -> None:
            while True:
                try:
                    work()
                    break
                except OSError as error:
                    # The broker may have ended since.
                    self.pair.note(f"{name}: {error!r}")
                    hub.sleep(SECOND // 2)
                except Exception as error:
                    failed.append(error)
                    hub.problem(f"{name}: {error!r}", error)
                    break
            done.append(True)

        hub.spawn(self.clients, attempt)
        in_time = hub.run(lambda: bool(done), hub.now + AUDIT_SECONDS_MAX * SECOND)
        assert in_time, f"{name} did not end within {AUDIT_SECONDS_MAX} s"


def wire_queue(name: str) -> Any:
    from lockkeeper.message.destination import queue

    return queue(name)
