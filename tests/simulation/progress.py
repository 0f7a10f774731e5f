"""What must not take long: answers to requests, and messages to consumers that have room.

Nobody has to be quick while something is in force that delays: only calm time counts. A client's
next sign of life, which comes every 1.7 s, would end many a stall: what is late is late before.
"""

from typing import TYPE_CHECKING, Any

from simulation.hub import SECOND

from lockkeeper.broker.regions.queue import Queue
from lockkeeper.client.links.runner import Runner

if TYPE_CHECKING:
    from collections.abc import Iterator

    from simulation.life import Life

LATE = SECOND
LOOK_EVERY = SECOND // 10


class Progress:
    """Looks again and again who waits in vain."""

    def __init__(self, life: "Life") -> None:
        self._life = life
        self._hub = life.world.hub
        self._calm_since = 0
        # What waits, by a key of its own: since when.
        self._waiting: dict[Any, int] = {}
        self._wires: list[Any] = []
        self._runners: list[Runner] = []
        life.wire.Wire = make_wire(life.wire.Wire, self._wires)
        self._watch_runners()
        self._look()

    def _watch_runners(self) -> None:
        runners, start = self._runners, Runner.start

        def watched(self: Runner) -> None:
            runners.append(self)
            start(self)

        Runner.start = watched  # type: ignore[method-assign]

    def forget_clients(self) -> None:
        """Note that all clients have ended."""
        self._wires.clear()
        self._runners.clear()

    def _look(self) -> None:
        self._hub.call_later(LOOK_EVERY, self._look)
        now = self._hub.now
        if self._is_disturbed():
            self._calm_since = now
        self._waiting = {each: self._waiting.get(each, now) for each in self._who_waits()}
        for (what, *_), since in self._waiting.items():
            if now - max(since, self._calm_since) > LATE:
                self._hub.problem(f"{what} waits for more than {LATE / SECOND} s, and for nothing")
                self._calm_since = now

    def _is_disturbed(self) -> bool:
        """Tell whether something is in force that may delay."""
        now, disk, engine = self._hub.now, self._life.world.disk, self._life.engine()
        return (
            engine is None
            or disk.is_full
            or disk.slow_until >= now
            or self._life.world.network.is_cut_somewhere()
            or any(each.stopped_until > now for each in self._life.pair.processes())
            or _lacks_room(engine.broker)
        )

    # Who waits

    def _who_waits(self) -> "Iterator[tuple[Any, ...]]":
        yield from self._requests()
        engine = self._life.engine()
        if engine is not None:
            yield from self._deliveries(engine.broker)

    def _requests(self) -> "Iterator[tuple[Any, ...]]":
        """Yield what clients have asked for on connections that still are there."""
        for wire in self._wires:
            if _is_whole(wire):
                for number, name in wire.asked.items():
                    yield f"{name} of {wire.name}", number
        for runner in self._runners:
            link = runner.link
            if link is not None and _is_whole(link):
                for number, request in runner.core._pending.items():
                    if request.was_sent:
                        yield f"{request.name} of a program", number, id(link)

    def _deliveries(self, broker: Any) -> "Iterator[tuple[Any, ...]]":
        """Yield backlogs that could be sent from, with how much was sent so far."""
        if not broker.context.has_room():
            return
        for region in broker.registry:
            backlogs = [region] if isinstance(region, Queue) else region.durables
            for backlog in backlogs:
                takers = [each for each in _takers(backlog) if _takes_all(each)]
                if takers and backlog.depth():
                    sent = sum(each.delivered for each in takers)
                    yield f"a message of {region.destination}", id(backlog), sent


def make_wire(base: type, wires: list[Any]) -> type:
    """Return a `Wire` that knows what has no answer yet, and enters itself among *wires*."""

    class Watched(base):  # type: ignore[misc]
        def __init__(self, *arguments: Any) -> None:
            self.asked: dict[int, str] = {}
            wires.append(self)
            super().__init__(*arguments)

        def ask(self, command: Any) -> int:
            number = int(super().ask(command))
            self.asked[number] = type(command).__name__
            return number

        def _take(self, frame: bytes) -> None:
            super()._take(frame)
            for number in self.answers.keys() & self.asked.keys():
                del self.asked[number]

    return Watched


def _is_whole(connected: Any) -> bool:
    """Tell whether a connection works: nobody has ended it, and nothing was lost on the way."""
    end = connected._socket.end if hasattr(connected, "_socket") else None
    return end is not None and not (end.is_closed or end.is_reset or end.is_ended or end.is_deaf)


def _takers(backlog: Any) -> list[Any]:
    if isinstance(backlog, Queue):
        return list(backlog.order.active)
    return [] if backlog.consumer is None else [backlog.consumer]


def _takes_all(consumer: Any) -> bool:
    return consumer.credit() > 0 and not consumer.is_selective() and not consumer.browser


def _lacks_room(broker: Any) -> bool:
    """Tell whether somebody waits for room that is not there."""
    flow = broker.flow
    return any(
        flow._lack(line[0].regions, is_persistent)
        for (_, is_persistent), line in flow.lines.items()
    )
