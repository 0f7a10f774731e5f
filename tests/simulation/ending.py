"""The end of a life: what is due happens, everything is consumed, and nothing may be left."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from simulation import clients, crowd, listeners
from simulation.hub import SECOND
from simulation.pair import SERVICE_PORT
from simulation.watchers import Steadiness

from lockkeeper.message.destination import queue, topic
from lockkeeper.store.kahadb.store import KahaDBStore

if TYPE_CHECKING:
    from simulation.life import Life

HOURS_LATER = 3
LOGIN_SECONDS_MAX = 15


class Ending:
    """What is done when all rounds are over."""

    def __init__(self, life: "Life") -> None:
        self.life = life
        self.load, self.wire, self.books = life.load, life.wire, life.books
        self.hub = life.world.hub
        self._asks = life.chance.random() < 0.5
        # What was consumed so far, by place; of that, what may come again.
        self._drained: dict[str, list[str]] = {}
        self._again: dict[str, set[str]] = {}

    def run(self) -> None:
        """Let everything end; what does not is a problem."""
        life, hub = self.life, self.hub
        self.let_time_pass()
        life.in_a_thread("silence", self._keep_silent)
        life.in_a_thread("drain", self._drain)
        hub.run(lambda: False, hub.now + 5 * SECOND)
        self._check_empty()
        life.pair.is_running = False
        for replica in life.pair.replicas:
            replica.terminate()
        ended = hub.run(lambda: not life.pair.processes(), hub.now + 60 * SECOND)
        if not ended:
            names = [each.name for each in life.pair.processes()]
            hub.problem(f"{names} do not end within 60 s of SIGTERM")

    def let_time_pass(self) -> None:
        """Set clocks on, past all that is to happen later; then it has happened."""
        life, hub = self.life, self.hub
        life.expect_expiry()
        steady = Steadiness(life)
        for number, replica in enumerate(life.pair.replicas):
            life.pair.wall_offsets[number] += HOURS_LATER * 3600 * SECOND
            if replica.process is not None:
                replica.process.wall_offset += HOURS_LATER * 3600 * SECOND
        hub.run(lambda: False, hub.now + 5 * SECOND)
        steady.check({"step_clock"})
        life.settle()
        self.books.is_over = True
        life.audit_all()
        if self.books.jobs:
            hub.problem(f"{self.books.jobs[:3]} are scheduled, and do not come")
        expired = self.books._live.get(crowd.EXPIRING)
        if expired:
            hub.problem(f"{expired[:3]} do not expire")
        for replica in life.pair.replicas:
            broker = replica.broker
            if replica.is_alive and broker is not None and broker._reloading.refusal:
                hub.problem(f"a configuration was refused: {broker._reloading.refusal}")

    def _keep_silent(self) -> None:
        """Connect and say nothing: the broker ends that."""
        place = ("127.0.0.1", SERVICE_PORT)
        silent = self.wire.socket.create_connection(place, LOGIN_SECONDS_MAX)
        try:
            while silent.recv(4096):
                continue
        except ConnectionError:
            return
        except TimeoutError:
            self.hub.problem(f"who says nothing may stay for {LOGIN_SECONDS_MAX} s")
        finally:
            silent.close()

    def _check_empty(self) -> None:
        master = self.life.pair.master()
        assert master is not None and master.broker is not None
        engine = master.broker._engine
        assert engine is not None
        used = engine.broker.memory.used
        if used:
            self.hub.problem(f"{used} bytes of memory are in use, and nothing is there")
        # Two files go in each look, twice a second.
        self.hub.run(lambda: engine.store.usage().files <= 4, self.hub.now + 30 * SECOND)
        files = engine.store.usage().files
        if files > 4:
            assert isinstance(engine.store, KahaDBStore)
            references = engine.store._file_references
            why = {number: each.live for number, each in references.files.items()}
            self.hub.problem(f"{files} journal files stay, and nothing is there; live: {why}")

    def _drain(self) -> None:
        """Consume everything; again, without what was consumed, if the master changes meanwhile."""
        wire = self.wire
        self._again = {place: set(names) for place, names in self._drained.items()}
        with wire.Wire(SERVICE_PORT) as connection:
            for identifier in connection.in_doubt():
                operation = wire.TransactionOperation.ROLLBACK
                connection.request(connection.transaction(identifier, operation))
        for name in (clients.VANDALISED, f"ActiveMQ.DLQ.Queue.{clients.VANDALISED}"):
            with wire.Wire(SERVICE_PORT) as connection:
                connection.consumer(queue(name))
                self.take(connection, name, 0)
        drains = self._drains()
        self.life.chance.shuffle(drains)
        for drain in drains:
            drain()

    def _drains(self) -> list[Callable[[], None]]:
        """Return what consumes each queue and each subscription."""
        load = self.load
        return [
            *(partial(self._drain_queue, name) for name in load.QUEUES),
            *(partial(self._drain_subscriber, name) for name in load.SUBSCRIBERS),
            *(partial(listeners.drain, self.life, name, self.take) for name in listeners.LISTENERS),
        ]

    def _drain_queue(self, name: str) -> None:
        expected = sorted(self.books._live.get(name, []))
        with self.wire.Wire(SERVICE_PORT) as connection:
            connection.consumer(queue(name))
            found = self.take(connection, name, len(expected))
        if name == crowd.DEAD_LETTERS:
            found = list(set(found))
        if sorted(found) != expected:
            self.books.problem(f"{name}: drained {len(found)} of {len(expected)}")

    def _drain_subscriber(self, subscriber: str) -> None:
        load, place = self.load, self.load.place_of(subscriber)
        expected = sorted(self.books._live.get(place, []))
        with self.wire.Wire(SERVICE_PORT, subscriber) as connection:
            connection.consumer(topic(load.TOPIC), subscription_name=load.SUBSCRIPTION)
            found = self.take(connection, place, len(expected))
        if sorted(found) != expected:
            self.books.problem(f"{place}: drained {len(found)} of {len(expected)}")

    def take(self, connection: Any, place: str, count: int) -> list[str]:
        """Consume what there is; returns it, and what was consumed there before."""
        found = self._drained.setdefault(place, [])
        again = self._again.get(place, set())
        while (dispatch := connection.next_dispatch(30 if len(found) < count else 0.5)) is not None:
            name = str(dispatch.message.message_id)
            if name in again:
                again.discard(name)
            else:
                found.append(name)
            self._acknowledge(connection, self.wire.acknowledgement(dispatch))
        return found

    def _acknowledge(self, connection: Any, acknowledgement: Any) -> None:
        """Acknowledge; whether anything else then has that written depends on the broker."""
        if self._asks:
            connection.request(acknowledgement)
        else:
            connection.tell(acknowledgement)
