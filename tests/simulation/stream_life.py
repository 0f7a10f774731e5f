"""One seed of streams: producers and groups on a pair that is taken over, with members that come,
leave, freeze and crash.

Rounds of work and faults are followed by the end: everything is healed, nobody sends any more, and
each group must get to the end of the stream in bounded time, and a queue that it feeds must have
each of its messages once. What must hold is in the books.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from simulation.course import Course, Options
from simulation.faults import Fault, Faults
from simulation.hub import SECOND
from simulation.pair import Pair
from simulation.stream_books import StreamBooks
from simulation.stream_clients import LEVELS_MS, LOCK_MS, PARTITIONS, Actor, GroupMember, Producer
from simulation.stream_feeds import FED, is_fed, problem_of
from simulation.watchers import Recounts, Writers

from lockkeeper.server.engine import Engine

GROUPS = ("loose", "strict")
FAULTS = (
    *("kill", "terminate", "freeze", "cut_power", "lose_machine", "slow_disk", "step_clock"),
    *("kill", "freeze", "cut_from_api_server"),
)
SETTLE_SECONDS_MAX = 120
DRAIN_SECONDS_MAX = 200
MEMBERS_MAX = 4


class StreamLife(Course):
    """One run of one seed with streams."""

    ordered = GROUPS[1]

    def __init__(self, seed: int, root: Path, options: Options) -> None:
        super().__init__(f"streams {seed}", seed, root, options)
        chance = self.chance
        self.slowness = chance.choice((2, 10, 30))
        self._interval = chance.choice((1, 5))
        self.books = StreamBooks(self.world.hub, self._interval * SECOND)
        self.pair = Pair(
            self.world, root / "disk" / "data", root, self._spec(), chance.random() < 0.6
        )
        self.pair.cluster.slowness = chance.choice((1, 20))
        self.clients = self.world.start("clients")
        self.faults = Faults(self)  # type: ignore[arg-type]
        self.writers = Writers(self)  # type: ignore[arg-type]
        self.recounts = Recounts(self)  # type: ignore[arg-type]
        self.is_producing = True
        self.links = 0
        self._is_over = False
        self._numbers = 0
        self._producers: list[Actor] = []
        self._members: dict[str, list[Actor]] = {group: [] for group in GROUPS}

    def _spec(self) -> dict[str, Any]:
        chance = self.chance
        return {
            "journal": {
                "fileBytes": chance.choice(("64Ki", "256Ki")),
                "cleanupInterval": chance.choice(("100ms", "1s")),
                "compactAcksAfterNoGC": chance.choice((1, 10)),
                "compactAcksIgnoresStoreGrowth": chance.random() < 0.5,
            },
            "locker": {"acquireInterval": "200ms", "keepAlivePeriod": "200ms"},
            "streams": {
                "defaults": {"partitions": PARTITIONS, "toQueues": [FED]},
                "delayLevels": [f"{each}ms" for each in LEVELS_MS],
                "memberTimeout": "2s",
                "lockTimeout": f"{LOCK_MS}ms",
                "offsetsInterval": f"{self._interval}s",
                "transactionTimeout": "1s",
                "checkInterval": "2s",
                "checksMax": 1_000,
            },
        }

    def policies(self) -> list[dict[str, Any]]:
        """Return the policies of a reload: none."""
        return []

    @property
    def log(self) -> list[str]:
        """What the brokers have logged, and what happened to them."""
        return self.pair.log

    def told(self) -> dict[str, Any]:
        """Return what is told of the run beside what went wrong."""
        return {"faults": self.faults.done, "lease": self.pair.has_lease, "actors": []}

    def engine(self) -> Engine | None:
        """Return what drives the master's broker, None while there is none."""
        master = self.pair.master()
        return None if master is None or master.broker is None else master.broker._engine

    # The course of it

    def _begin(self) -> None:
        self.pair.start()
        self._settle()
        for _ in range(self.chance.randint(1, 2)):
            self._producers.append(Producer(self, self._name("p")))
        for group in GROUPS:
            for _ in range(self.chance.randint(1, 3)):
                self._join(group)
        self._have_churn()

    def _settle(self) -> None:
        hub = self.world.hub
        found = hub.run(lambda: self.engine() is not None, hub.now + SETTLE_SECONDS_MAX * SECOND)
        assert found, f"no master after {SETTLE_SECONDS_MAX} s: {self.pair.endings[-3:]}"

    def _round(self, number: int) -> None:
        hub = self.world.hub
        seconds = self.chance.uniform(2, 10)
        self.pair.note(f"round {number} of {seconds:.2f} s")
        begun = hub.now
        for fault in self.faults.plan(self.chance.choice((1, 1, 2, 3)), seconds, FAULTS):
            self.planned += 1
            if self.planned - 1 not in self.options.skipped:
                hub.call_at(begun + int(fault.at * SECOND), self._doing(fault))
        hub.run(lambda: False, begun + int(seconds * SECOND))
        self.faults.heal()
        self._settle()

    def _doing(self, fault: Fault) -> Callable[[], None]:
        def do() -> None:
            self.books.is_slow |= fault.kind == "slow_disk"
            self.books.is_stepped |= fault.kind == "step_clock"
            self.faults.carry_out(fault)

        return do

    # Members that come and go

    def _name(self, kind: str) -> str:
        self._numbers += 1
        return f"{kind}{self._numbers}"

    def _join(self, group: str) -> None:
        self._members[group].append(GroupMember(self, group, self._name("m")))

    def _have_churn(self) -> None:
        delay = int(self.chance.uniform(0.3, 2) * SECOND)
        self.world.hub.call_later(delay, self._churn)

    def _churn(self) -> None:
        """Have somebody join, leave, freeze or crash."""
        if self._is_over:
            return
        kind = self.chance.choice(("join", "leave", "freeze", "crash"))
        group = self.chance.choice(GROUPS)
        members = self._alive(group)
        self.pair.note(f"CHURN {kind} {group}")
        if kind == "join" or not members:
            if len(members) < MEMBERS_MAX:
                self._join(group)
        else:
            self._let_go(kind, self.chance.choice([*members, *self._producers]))
        self._have_churn()

    def _let_go(self, kind: str, actor: Actor) -> None:
        hub = self.world.hub
        if kind == "freeze":
            hub.stop(actor.process, int(self.chance.choice((0.2, 2, 6, 12)) * SECOND))
        elif actor in self._producers:
            hub.kill(actor.process)
            self._producers[self._producers.index(actor)] = Producer(self, self._name("p"))
        elif kind == "crash":
            hub.kill(actor.process)
        else:
            actor.is_stopping = True

    def _alive(self, group: str) -> list[Actor]:
        members = self._members[group]
        members[:] = [each for each in members if each.process.is_alive]
        return members

    # The end

    def _end(self) -> None:
        """See that groups get to the end, with the members that they have then."""
        hub = self.world.hub
        self._is_over = True
        self.is_producing = False
        for group in GROUPS:
            self._join(group)
        end = hub.now + DRAIN_SECONDS_MAX * SECOND
        hub.run(self._is_drained, end)
        engine = self.engine()
        if engine is None:
            self.books.problem("there is no master in the end")
            return
        for group in GROUPS:
            if missing := self.books.missing(group):
                count, some = len(missing), sorted(missing)[:3]
                self.books.problem(f"group {group} did not get {count} messages, {some} among them")
        if not is_fed(engine.broker):
            self.books.problem("the queue that the stream feeds does not get to the end")
        if count := engine.broker.streams.pending_transactions:
            self.books.problem(f"{count} transactions have no outcome")
        self.books.check_counts(engine.broker.containment.counts)
        self._check_feed()

    def _check_feed(self) -> None:
        """Compare the queue with the stream that feeds it, as the master has them."""
        hub, master, done = self.world.hub, self.pair.master(), list[bool]()
        engine = self.engine()
        if engine is None or master is None or master.process is None:
            return

        def check() -> None:
            problem = problem_of(engine.broker)
            if problem is not None:
                self.books.problem(problem)
            done.append(True)

        hub.spawn(master.process, check)
        hub.run(lambda: bool(done), hub.now + SETTLE_SECONDS_MAX * SECOND)

    def _is_drained(self) -> bool:
        engine = self.engine()
        if engine is None or engine.broker.streams.pending_transactions:
            return False
        if not is_fed(engine.broker):
            return False
        return not any(self.books.missing(group) for group in GROUPS)
