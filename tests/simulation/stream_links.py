"""Links of simulated clients to the streams of a master: commands go in, outputs come out.

There is no wire between them. A command is carried out in a round of the process's event loop, as
if its bytes had just been read; outputs leave when the engine writes to the connection. Both take
their time, and whatever ends the process ends them.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from simulation.hub import MILLISECOND, SECOND, Task

from lockkeeper.broker.connections import Connection
from lockkeeper.broker.core import Broker
from lockkeeper.broker.errors import BrokerError
from lockkeeper.broker.streams.outputs import Refused

if TYPE_CHECKING:
    from simulation.stream_life import StreamLife

TIMEOUT = 2 * SECOND
Command = Callable[[Broker, Connection, int], Any]
"""A command gets the tag of its answer; what it returns is the answer, None if that comes later."""


class LinkLostError(Exception):
    """There is no master, or it does not answer."""


class Answer(NamedTuple):
    """The answer to a command that is answered at once."""

    tag: int
    value: Any


class Link:
    """One connection of a client; it is the sender that the core knows."""

    def __init__(self, life: "StreamLife", name: str) -> None:
        """Open it; waits for that. Raises LinkLostError."""
        engine, master = life.engine(), life.pair.master()
        if engine is None or master is None or master.process is None:
            raise LinkLostError("no master")
        self.notices: list[Any] = []
        self._life = life
        self._hub = life.world.hub
        self._engine = engine
        self.process = master.process
        life.links += 1
        self._name = f"{name}-{life.links}"
        self._connection: Connection | None = None
        self._answers: dict[int, Any] = {}
        self._tags = 0
        self._waits: Task | None = None
        self._is_lost = False
        self._last_arrival = 0
        client = self._hub.process()
        assert client is not None
        self._client = client
        client.at_end.append(self.abandon)
        self.ask(self._open)

    def _open(self, broker: Broker, _: Connection, __: int) -> bool:
        self._life.books.see_process(broker, self.process)
        connection = self._connection = broker.open_connection(f"tcp://{self._name}")
        connection.sender = self
        broker.connect(connection, self._name, self._name)
        return True

    def ask(self, command: Command, timeout: int = TIMEOUT) -> Any:
        """Return what comes of a command. Raises BrokerError, or LinkLostError without an answer.

        Whether it was carried out, nobody knows then.
        """
        self._tags += 1
        tag, hub = self._tags, self._hub
        if self._is_lost:
            raise LinkLostError("it is closed")
        self._send(lambda: self._carry_out(command, tag))
        end, self._waits = hub.now + timeout, hub.current
        while tag not in self._answers and hub.now < end:
            hub.park(end - hub.now)
        if tag not in self._answers:
            self.abandon()
            raise LinkLostError("no answer")
        answer = self._answers.pop(tag)
        if isinstance(answer, Refused):
            raise answer.error
        return answer.value if isinstance(answer, Answer) else answer

    def _send(self, work: Callable[[], None]) -> None:
        """Have the broker's process do something, after a while."""
        loop = self._engine._loop
        delay = self._life.chance.randint(1, self._life.slowness) * MILLISECOND

        def hand_over() -> None:
            loop.call_soon(work)

        self._hub.call_later(delay, hand_over)

    def _carry_out(self, command: Command, tag: int) -> None:
        engine = self._engine
        if engine.is_closed:
            return
        engine.stamp()
        self._life.books.alive(self.process)
        try:
            value = command(engine.broker, self._connection, tag)  # type: ignore[arg-type]
        except BrokerError as error:
            value = Refused(tag, error)
        except Exception as error:
            engine._part_with(self, self._name, error)
            return
        if value is not None and self._connection is not None:
            is_refusal = isinstance(value, Refused)
            self._connection.put(value if is_refusal else Answer(tag, value))
        engine.wake()

    # What the engine calls

    def flush(self) -> None:
        """Let what there is to say be on its way."""
        assert self._connection is not None
        outputs, self._connection.outbox = self._connection.outbox, []
        delay = self._life.chance.randint(1, self._life.slowness) * MILLISECOND
        self._last_arrival = max(self._last_arrival + 1, self._hub.now + delay)
        self._hub.call_at(self._last_arrival, lambda: self._arrive(outputs))

    def abort(self) -> None:
        """Hear that the broker parts."""
        self._is_lost = True

    def hand_over(self, session: Any) -> None:
        """Nobody does that here."""

    def ended(self) -> None:
        """Nobody says that here."""

    def _arrive(self, outputs: list[Any]) -> None:
        if self._is_lost or not self._client.is_alive:
            return
        for output in outputs:
            tag = getattr(output, "tag", None)
            if tag is None:
                self.notices.append(output)
            else:
                self._answers[tag] = output
        if self._waits is not None:
            self._hub.unpark(self._waits)

    def abandon(self) -> None:
        """Close it, as a process does that ends: the broker hears of it."""
        if self._is_lost:
            return
        self._is_lost = True

        def lose() -> None:
            if self._connection is not None and not self._engine.is_closed:
                self._engine.stamp()
                self._engine.broker.disconnect(self._connection)
                self._engine.wake()

        self._send(lose)
