"""The network between processes: bytes take time, come in pieces, and sometimes never.

Sockets of clients wait like blocking ones; those of a broker are transports of its event loop.
"""

import select as real_select
import selectors as real_selectors
import socket as real_socket
from collections import deque
from collections.abc import Callable
from math import ceil
from types import ModuleType
from typing import Any, NoReturn

from simulation.hub import MICROSECOND, SECOND, Hub, Process, Task
from simulation.shim import Shim

WINDOW_BYTES = 128 * 1024
"""What both kernels keep of one direction."""
JOINED = 0.5
"""How often what is sent soon after something else arrives with it."""
NOT_ANSWERED = 75 * SECOND
"""How long a system waits for a peer that does not say anything."""


class End:
    """One side of a connection."""

    def __init__(self, network: "Network", process: Process, address: tuple[str, int]) -> None:
        self.network = network
        self.process = process
        self.address = address
        self.peer: End
        self.received = bytearray()
        self.in_flight = 0
        self.is_ended = False
        self.is_reset = False
        self.is_closed = False
        self.is_deaf = False
        # Nobody will ever say that it is over: the other machine is gone.
        self.is_lost = False
        self.changed: list[Callable[[], None]] = []
        self._last_arrival = 0
        self._under_way: deque[bytearray] = deque()

    # Sending

    def room(self) -> int:
        """Return how many bytes may be sent now."""
        return WINDOW_BYTES - self.in_flight - len(self.peer.received)

    def send(self, data: bytes) -> int:
        """Send what there is room for. Raises BlockingIOError or OSError."""
        if self.is_reset:
            raise ConnectionResetError(104, "connection reset by peer")
        if self.is_closed:
            raise BrokenPipeError(32, "broken pipe")
        count = min(len(data), self.room())
        if count <= 0:
            raise BlockingIOError(11, "no room")
        self.in_flight += count
        self._deliver(bytes(data[:count]))
        return count

    def _deliver(self, data: bytes) -> None:
        """Have bytes arrive, now and then together with those that are under way."""
        if self._under_way and self.network.hub.chance.random() < JOINED:
            self._under_way[-1] += data
            return
        self._under_way.append(bytearray(data))

        def arrive() -> None:
            data = bytes(self._under_way.popleft())
            self.in_flight -= len(data)
            peer = self.peer
            if peer.is_closed:
                self.reset()
            elif not peer.is_reset:
                peer.received += data
                peer.notify()

        self._at_arrival(arrive)

    def _at_arrival(self, action: Callable[[], None]) -> None:
        """Do something when what was sent before has come, unless nothing comes any more."""
        network = self.network
        if self.is_deaf or network.is_cut(self.process, self.peer.process):
            self.is_deaf = self.peer.is_deaf = True
            return
        when = max(network.hub.now + network.latency(), self._last_arrival + 1)
        self._last_arrival = when

        def act() -> None:
            if not self.is_deaf:
                action()

        network.hub.call_at(when, act)

    def shut_down(self) -> None:
        """Send the end of the stream."""
        if not self.is_closed:
            self.is_closed = True
            self._at_arrival(self.peer.end)
            self.notify()

    def end(self) -> None:
        self.is_ended = True
        self.notify()

    def reset(self) -> None:
        """The peer, or the network, has ended the connection."""
        self.is_reset = True
        self.notify()

    def abort(self) -> None:
        """End it without a word but a reset."""
        self.is_closed = True
        self._at_arrival(self.peer.reset)

    # Receiving

    def take(self, size: int) -> bytes:
        """Return bytes that have come. Raises BlockingIOError or OSError; empty at the end."""
        if self.received:
            data = bytes(self.received[:size])
            del self.received[:size]
            self.network.hub.call_later(self.network.latency(), self.peer.notify)
            return data
        if self.is_reset:
            raise ConnectionResetError(104, "connection reset by peer")
        if self.is_ended:
            return b""
        raise BlockingIOError(11, "nothing there")

    def readable(self) -> bool:
        return bool(self.received) or self.is_ended or self.is_reset or self.is_closed

    def writable(self) -> bool:
        return self.is_reset or self.is_closed or self.room() > 0

    def notify(self) -> None:
        for each in list(self.changed):
            each()


class Socket:
    """A client's socket."""

    def __init__(self, end: End, timeout: float | None) -> None:
        self.end = end
        self._timeout = timeout
        self._network = end.network

    def setsockopt(self, *_: object) -> None:
        pass

    def setblocking(self, flag: bool) -> None:
        self._timeout = None if flag else 0.0

    def settimeout(self, timeout: float | None) -> None:
        self._timeout = timeout

    def fileno(self) -> int:
        return -1 if self.end.is_closed else 9999

    def send(self, data: Any) -> int:
        self._network.hub.system_call("send")
        sent = self._network.until(lambda: self.end.send(bytes(data)), self.end, self._timeout)
        return int(sent)

    def sendall(self, data: Any) -> None:
        view = memoryview(bytes(data))
        while view:
            view = view[self.send(view) :]

    def recv(self, size: int) -> bytes:
        hub = self._network.hub
        hub.system_call("recv")
        if self.end.is_closed and not self.end.received:
            return b""
        size = hub.chance.choice((size, size, 1 + size // 1000))
        found = self._network.until(lambda: self.end.take(size), self.end, self._timeout)
        return bytes(found)

    def shutdown(self, how: int) -> None:
        if self.end.is_reset:
            raise OSError(107, "not connected")
        self.end.shut_down()
        self.end.is_ended = True
        self.end.notify()

    def close(self) -> None:
        self.end.shut_down()


class Listening:
    """A broker's socket before it listens."""

    family = real_socket.AF_INET

    def __init__(self, network: "Network") -> None:
        self._network = network
        self._address = ("127.0.0.1", 0)

    def setsockopt(self, *_: object) -> None:
        pass

    def setblocking(self, flag: bool) -> None:
        pass

    def bind(self, address: tuple[str, int]) -> None:
        found = self._network.listener_at(address[1])
        if found is not None and found.is_alive:
            raise OSError(98, "address in use")
        self._address = ("127.0.0.1", address[1])

    def getsockname(self) -> tuple[str, int]:
        return self._address

    def close(self) -> None:
        process = self._network.hub.process()
        if process is not None:
            self._network.close(self._address[1], process)


class Network:
    """Who listens where, and which processes reach each other."""

    def __init__(self, hub: Hub) -> None:
        self.hub = hub
        self.slowness = 1
        self.ends: list[End] = []
        self._listening: dict[int, tuple[Process, Callable[[End], None]]] = {}
        self._cut: set[frozenset[Process]] = set()
        self._dark: set[int] = set()
        self._ports = 20_000
        self.services: dict[int, list[int]] = {}

    def latency(self) -> int:
        return self.hub.chance.randint(20, 400) * MICROSECOND * self.slowness

    def is_cut(self, one: Process, other: Process) -> bool:
        return frozenset((one, other)) in self._cut

    def is_cut_somewhere(self) -> bool:
        """Tell whether somebody does not reach somebody."""
        return bool(self._cut)

    def cut(self, one: Process, other: Process) -> None:
        """Let nothing through between two processes, and tell neither."""
        self._cut.add(frozenset((one, other)))

    def heal(self) -> None:
        """Let everybody reach everybody; connections that missed something end with a reset."""
        self._cut.clear()
        for end in self.ends:
            if end.is_deaf and not end.is_closed and not end.is_lost:
                end.reset()

    def lose_machine(self, process: Process) -> None:
        """Let a process's connections fall silent for good, and nobody answer where it was."""
        for end in [end for end in self.ends if process in (end.process, end.peer.process)]:
            end.is_deaf = end.is_lost = True
        self._dark |= {p for p, (owner, _) in self._listening.items() if owner is process}

    def reset_some(self, process: Process, share: float) -> None:
        """End some connections of a process for both sides."""
        for end in [end for end in self.ends if end.process is process]:
            if not end.is_closed and self.hub.chance.random() < share:
                end.reset()
                end.peer.reset()

    def listen(self, port: int, process: Process, accept: Callable[[End], None]) -> None:
        self._listening[port] = process, accept
        self._dark.discard(port)

    def listener_at(self, port: int) -> Process | None:
        """Return the process that listens at *port*."""
        found = self._listening.get(port)
        return None if found is None else found[0]

    def close(self, port: int, process: Process) -> None:
        if port in self._listening and self._listening[port][0] is process:
            del self._listening[port]

    def forget_process(self, process: Process) -> None:
        """End what a process that is gone had open: its system does that."""
        for port in [p for p, (owner, _) in self._listening.items() if owner is process]:
            del self._listening[port]
        mine = [end for end in self.ends if end.process is process]
        self.ends = [end for end in self.ends if end.process is not process]
        for end in mine:
            if not end.is_closed:
                end.abort()

    def dial(self, process: Process, port: int, patience: int | None) -> End:
        """Return the end of a new connection. Raises OSError."""
        hub = self.hub
        hub.system_call("connect")
        hub.sleep(self.latency())
        found = self._reached(port)
        if found is None and port in self._dark:
            self._go_unanswered(patience)
        if found is None:
            raise ConnectionRefusedError(111, "connection refused")
        owner, accept = found
        port = next(p for p, each in self._listening.items() if each is found)
        if self.is_cut(process, owner):
            self._go_unanswered(patience)
        self._ports += 1
        here = End(self, process, ("127.0.0.1", self._ports))
        there = End(self, owner, ("127.0.0.1", port))
        here.peer, there.peer = there, here
        self.ends = [end for end in self.ends if not end.is_closed] + [here, there]
        accept(there)
        return here

    def _go_unanswered(self, patience: int | None) -> NoReturn:
        self.hub.sleep(min(NOT_ANSWERED, patience or NOT_ANSWERED))
        raise TimeoutError(110, "timed out")

    def _reached(self, port: int) -> tuple[Process, Callable[[End], None]] | None:
        """Return who answers at *port*; a service's is answered by whichever member listens."""
        members = self.services.get(port, [port])
        found = [self._listening[each] for each in members if each in self._listening]
        return self.hub.chance.choice(found) if found else None

    # The modules that clients use

    def make_socket(self) -> ModuleType:
        """Return the module `socket`."""

        def create_connection(address: tuple[str, int], timeout: Any = None, **_: Any) -> Socket:
            process = self.hub.process()
            assert process is not None
            patience = None if timeout is None else int(timeout * SECOND)
            end = self.dial(process, address[1], patience)
            return Socket(end, None if timeout is None else float(timeout))

        return Shim(
            real_socket,
            create_connection=create_connection,
            socket=lambda *_: Listening(self),
            gethostname=lambda: "host",
        )

    def until(self, attempt: Callable[[], Any], end: End, timeout: float | None) -> Any:
        """Try until it does not block; *timeout* in seconds, 0 for one try."""
        hub = self.hub
        deadline = None if timeout is None else hub.now + ceil(timeout * SECOND)
        while True:
            try:
                return attempt()
            except BlockingIOError:
                if timeout == 0:
                    raise
                left = None if deadline is None else deadline - hub.now
                if left is not None and left <= 0:
                    raise TimeoutError("timed out") from None
                self.wait_for([end], left)

    def wait_for(self, ends: list[End], left: int | None) -> None:
        """Wait until something changes at one of *ends*, or *left* ns pass."""
        hub = self.hub
        task = hub.current
        assert isinstance(task, Task)

        def wake() -> None:
            hub.unpark(task)

        for end in ends:
            end.changed.append(wake)
        try:
            hub.park(left)
        finally:
            for end in ends:
                end.changed.remove(wake)

    def _ready(self, wanted: list[tuple[Any, int]]) -> list[tuple[Any, int]]:
        found = []
        for sock, events in wanted:
            ready = 0
            if events & real_selectors.EVENT_READ and sock.end.readable():
                ready |= real_selectors.EVENT_READ
            if events & real_selectors.EVENT_WRITE and sock.end.writable():
                ready |= real_selectors.EVENT_WRITE
            if ready:
                found.append((sock, ready))
        return found

    def poll(self, wanted: list[tuple[Any, int]], seconds: float | None) -> list[tuple[Any, int]]:
        """Wait until one of the sockets is ready; returns which are."""
        hub = self.hub
        hub.system_call("poll")
        deadline = None if seconds is None else hub.now + max(0, ceil(seconds * SECOND))
        while not (found := self._ready(wanted)):
            left = None if deadline is None else deadline - hub.now
            if left is not None and left <= 0:
                return []
            self.wait_for([sock.end for sock, _ in wanted], left)
        return found

    def make_selectors(self) -> ModuleType:
        network = self

        class Selector:
            def __init__(self) -> None:
                self._wanted: dict[Any, tuple[int, Any]] = {}

            def register(self, sock: Any, events: int, data: Any = None) -> None:
                self._wanted[sock] = events, data

            def unregister(self, sock: Any) -> None:
                del self._wanted[sock]

            def modify(self, sock: Any, events: int, data: Any = None) -> None:
                self._wanted[sock] = events, data

            def select(self, seconds: float | None = None) -> list[tuple[Any, int]]:
                wanted = [(sock, events) for sock, (events, _) in self._wanted.items()]
                return [
                    (
                        real_selectors.SelectorKey(sock, 0, *self._wanted[sock]),
                        ready,
                    )
                    for sock, ready in network.poll(wanted, seconds)
                ]

            def close(self) -> None:
                self._wanted.clear()

            def __enter__(self) -> "Selector":
                return self

            def __exit__(self, *_: object) -> None:
                self.close()

        return Shim(real_selectors, DefaultSelector=Selector)

    def select(
        self, readers: list[Any], writers: list[Any], _: list[Any], seconds: float | None = None
    ) -> tuple[list[Any], list[Any], list[Any]]:
        """See `select.select`."""
        wanted = [(each, real_selectors.EVENT_READ) for each in readers]
        wanted += [(each, real_selectors.EVENT_WRITE) for each in writers]
        found = self.poll(wanted, seconds)
        ready = {id(sock): events for sock, events in found}
        return (
            [each for each in readers if ready.get(id(each), 0) & real_selectors.EVENT_READ],
            [each for each in writers if ready.get(id(each), 0) & real_selectors.EVENT_WRITE],
            [],
        )

    def make_select_module(self) -> ModuleType:
        return Shim(real_select, select=self.select)
