"""An event loop of asyncio for one simulated process, with transports over the network."""

import asyncio
import socket as real_socket
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor
from contextvars import Context
from heapq import heappop, heappush
from math import ceil
from typing import Any, TypeVar, TypeVarTuple

from simulation.hub import MICROSECOND, SECOND, Hub, Process
from simulation.kernel import Kernel
from simulation.network import End, Network, Socket

READ_BYTES = 256 * 1024
BUFFER_BYTES = 64 * 1024

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class Loop(asyncio.AbstractEventLoop):
    """Runs callbacks in the order they were asked for; each round takes some time."""

    def __init__(self, hub: Hub, kernel: Kernel, network: Network, process: Process) -> None:
        self.hub = hub
        self.network = network
        self.process = process
        self._kernel = kernel
        self._ready: deque[asyncio.Handle] = deque()
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []
        self._count = 0
        self._readers: dict[int, tuple[asyncio.Handle, Callable[[], None]]] = {}
        self._sockets: dict[tuple[Socket, str], asyncio.Handle] = {}
        self._is_stopping = False
        self._task = hub.current

    # Running

    def run_until_complete(self, future: Any) -> Any:
        """Run until *future* is done; to be called in a thread of the process."""
        task = self.hub.current
        assert task is not None
        self._task = task
        task.loop = self
        asyncio._set_running_loop(self)
        done = asyncio.ensure_future(future, loop=self)
        done.add_done_callback(lambda _: self.stop())
        while not self._is_stopping:
            self._run_once()
        return done.result()

    def _run_once(self) -> None:
        hub = self.hub
        now = self.time()
        while self._timers and self._timers[0][0] <= now + 1e-9:
            _, _, timer = heappop(self._timers)
            if not timer._cancelled:
                self._ready.append(timer)
        for number, (handle, _) in list(self._readers.items()):
            entry = self._kernel.table.get(number)
            if entry is not None and entry.readable():
                self._ready.append(handle)
        for (watched, event), handle in list(self._sockets.items()):
            if watched.end.readable() if event == "read" else watched.end.writable():
                self._ready.append(handle)
        if not self._ready:
            wait = None
            if self._timers:
                wait = max(1, ceil((self._timers[0][0] - now) * SECOND))
            hub.park(wait)
            return
        for _ in range(len(self._ready)):
            handle = self._ready.popleft()
            if not handle._cancelled:
                handle._run()
        hub.sleep(hub.chance.randint(5, 60) * MICROSECOND)

    def wake(self) -> None:
        """See to what is ready, if the loop waits."""
        if self._task is not None:
            self.hub.unpark(self._task)

    def stop(self) -> None:
        self._is_stopping = True

    def is_running(self) -> bool:
        return True

    def is_closed(self) -> bool:
        return False

    def close(self) -> None:
        pass

    def get_debug(self) -> bool:
        return False

    def time(self) -> float:
        return self.hub.now / SECOND

    # Callbacks

    def call_soon(
        self, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        handle = asyncio.Handle(callback, args, self, context)
        self._ready.append(handle)
        self.wake()
        return handle

    call_soon_threadsafe = call_soon

    def call_later(
        self,
        delay: float,
        callback: Callable[[*Ts], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        return self.call_at(self.time() + delay, callback, *args, context=context)

    def call_at(
        self,
        when: float,
        callback: Callable[[*Ts], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        timer = asyncio.TimerHandle(when, callback, args, self, context)
        self._count += 1
        heappush(self._timers, (when, self._count, timer))
        self.wake()
        return timer

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        pass

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def create_task(self, coro: Any, *, name: Any = None, context: Any = None) -> Any:
        return asyncio.Task(coro, loop=self, name=name, context=context)

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[*Ts], T], *args: *Ts
    ) -> asyncio.Future[T]:
        future: asyncio.Future[T] = self.create_future()

        def work() -> None:
            try:
                result = func(*args)
            except BaseException as error:
                self.call_soon(self._fail, future, error)
            else:
                self.call_soon(lambda: None if future.cancelled() else future.set_result(result))

        self.hub.spawn(self.process, work)
        return future

    def _fail(self, future: asyncio.Future[T], error: BaseException) -> None:
        if not future.cancelled():
            future.set_exception(error)

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        error = context.get("exception")
        self.hub.problem(f"{self.process.name}: {context.get('message')}: {error!r}", error)

    def default_exception_handler(self, context: dict[str, Any]) -> None:
        self.call_exception_handler(context)

    def get_exception_handler(self) -> None:
        return None

    # Descriptors, signals

    def add_reader(self, fd: Any, callback: Callable[[*Ts], Any], *args: *Ts) -> None:
        if isinstance(fd, Socket):
            self._watch(fd, "read", asyncio.Handle(callback, args, self, None))
            return
        entry = self._kernel.table[fd]
        handle = asyncio.Handle(callback, args, self, None)
        entry.watchers.append(self.wake)
        self._readers[fd] = handle, self.wake

    def add_writer(self, fd: Any, callback: Callable[[*Ts], Any], *args: *Ts) -> None:
        self._watch(fd, "write", asyncio.Handle(callback, args, self, None))

    def remove_writer(self, fd: Any) -> bool:
        return self._ignore(fd, "write")

    def _watch(self, socket: Socket, event: str, handle: asyncio.Handle) -> None:
        self._sockets[socket, event] = handle
        socket.end.changed.append(self.wake)
        self.wake()

    def _ignore(self, socket: Socket, event: str) -> bool:
        if self._sockets.pop((socket, event), None) is None:
            return False
        socket.end.changed.remove(self.wake)
        return True

    def remove_reader(self, fd: Any) -> bool:
        if isinstance(fd, Socket):
            return self._ignore(fd, "read")
        found = self._readers.pop(fd, None)
        entry = self._kernel.table.get(fd)
        if found is not None and entry is not None and found[1] in entry.watchers:
            entry.watchers.remove(found[1])
        return found is not None

    def add_signal_handler(self, sig: int, callback: Callable[[*Ts], object], *args: *Ts) -> None:
        self.process.locals[f"signal {int(sig)}"] = lambda: self.call_soon(callback, *args)

    # Network

    async def open_socket(self, port: int) -> Socket:
        """Dial, as a client does."""
        is_wanted = True

        def dial() -> Socket:
            end = self.network.dial(self.process, port, None)
            if not is_wanted:
                end.abort()
            return Socket(end, 0.0)

        try:
            return await self.run_in_executor(None, dial)
        except asyncio.CancelledError:
            is_wanted = False
            raise

    async def create_connection(
        self, protocol_factory: Callable[[], Any], *_: Any, **options: Any
    ) -> Any:
        protocol = protocol_factory()
        return Transport(self, options["sock"].end, protocol), protocol

    async def getaddrinfo(self, host: Any, port: Any, **_: Any) -> Any:
        return [(real_socket.AF_INET, real_socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]

    async def create_server(
        self,
        protocol_factory: Callable[[], asyncio.BaseProtocol],
        host: Any = None,
        port: Any = None,
        *,
        sock: Any = None,
        **_: Any,
    ) -> Any:
        port = sock.getsockname()[1]

        def accept(end: End) -> None:
            self.call_soon(lambda: Transport(self, end, protocol_factory()))

        self.network.listen(port, self.process, accept)
        return Server(self.network, port, self.process)


class Server:
    """What listens, until it is closed."""

    def __init__(self, network: Network, port: int, process: Process) -> None:
        self._close: Callable[[], None] = lambda: network.close(port, process)

    def close(self) -> None:
        self._close()


class Transport(asyncio.Transport):
    """A broker's side of a connection; what arrives comes in pieces of any size."""

    def __init__(self, loop: Loop, end: End, protocol: Any) -> None:
        super().__init__({"peername": end.peer.address})
        self._loop, self._end, self._protocol = loop, end, protocol
        self._out = bytearray()
        self._high, self._low = BUFFER_BYTES, BUFFER_BYTES // 4
        self._reads = True
        self._is_paused = False
        self._is_closing = False
        self._is_lost = False
        self._is_waiting = False
        end.changed.append(self._changed)
        protocol.connection_made(self)
        self._changed()

    def set_protocol(self, protocol: Any) -> None:
        self._protocol = protocol

    def get_protocol(self) -> Any:
        return self._protocol

    def is_closing(self) -> bool:
        return self._is_closing

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._high = BUFFER_BYTES if high is None else high
        self._low = self._high // 4 if low is None else low

    def get_write_buffer_size(self) -> int:
        return len(self._out)

    def get_write_buffer_limits(self) -> tuple[int, int]:
        return self._low, self._high

    def pause_reading(self) -> None:
        self._reads = False

    def resume_reading(self) -> None:
        self._reads = True
        self._changed()

    def is_reading(self) -> bool:
        return self._reads

    def write(self, data: Any) -> None:
        if self._is_lost or self._is_closing:
            return
        self._loop.hub.system_call("send")
        self._out += data
        self._push()
        if len(self._out) > self._high and not self._is_paused:
            self._is_paused = True
            self._protocol.pause_writing()

    def writelines(self, list_of_data: Any) -> None:
        self.write(b"".join(list_of_data))

    def close(self) -> None:
        if not self._is_closing:
            self._is_closing = True
            self._reads = False
            if not self._out:
                self._lose(None)

    def abort(self) -> None:
        if not self._is_lost:
            self._is_closing = True
            self._end.abort()
            self._lose(None)

    def _lose(self, error: Exception | None) -> None:
        if self._is_lost:
            return
        self._is_lost = self._is_closing = True
        if self._changed in self._end.changed:
            self._end.changed.remove(self._changed)
        self._end.shut_down()
        self._loop.call_soon(self._protocol.connection_lost, error)

    def _changed(self) -> None:
        if not self._is_waiting and not self._is_lost:
            self._is_waiting = True
            self._loop.call_soon(self._see)

    def _see(self) -> None:
        """Read and write what can be."""
        self._is_waiting = False
        if self._is_lost:
            return
        self._push()
        if self._is_lost or not self._reads or not self._end.readable():
            return
        chance = self._loop.hub.chance
        size = READ_BYTES if chance.random() < 0.7 else chance.randint(1, 3000)
        self._loop.hub.system_call("recv")
        try:
            data = self._end.take(size)
        except BlockingIOError:
            return
        except OSError as error:
            self._lose(error)
            return
        if not data:
            self._lose(None)
            return
        self._changed()
        self._protocol.data_received(data)

    def _push(self) -> None:
        while self._out:
            try:
                count = self._end.send(bytes(self._out))
            except BlockingIOError:
                break
            except OSError as error:
                self._out.clear()
                self._lose(error)
                return
            del self._out[:count]
        if self._is_paused and len(self._out) <= self._low:
            self._is_paused = False
            self._protocol.resume_writing()
        if self._is_closing and not self._out:
            self._lose(None)
