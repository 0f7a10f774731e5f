"""One socket to one broker, from the handshake to its end.

It is read in its event loop; whoever holds the lock may write, also from another thread.
"""

import asyncio
import socket
import threading
import time
from collections.abc import Callable

from lockkeeper.client.core.connection import ConnectionCore
from lockkeeper.client.core.delivery import DISPATCH, Delivery, DispatchReader
from lockkeeper.client.core.wire import Wire
from lockkeeper.client.errors import MessagingError
from lockkeeper.client.tls import SecureSocket
from lockkeeper.client.url import Address
from lockkeeper.message.errors import MalformedMessageError
from lockkeeper.message.openwire import Structure
from lockkeeper.protocols.openwire.errors import ProtocolError
from lockkeeper.protocols.settings import ListenerSettings

RECEIVE_BYTES = 256 * 1024
LINK_ERRORS = (OSError, ProtocolError, MalformedMessageError)
"""What ends a link, and no more than that."""


class Link:
    """An open socket; `lost` is done when it is of no use any more, with the reason.

    What it reads goes to *core*, and what that has to say is written. A core that is ended gets
    nothing any more.
    """

    def __init__(
        self,
        address: Address,
        opened: "socket.socket | SecureSocket",
        core: ConnectionCore,
        lock: threading.Lock,
        after_reading: Callable[[], None],
    ) -> None:
        options = address.options
        settings = ListenerSettings(
            options.frame_bytes_max, options.inactivity_duration, options.inactivity_initial_delay
        )
        self.address = address
        self.opened = time.monotonic()
        self.wire = Wire(settings, str(address), self.opened)
        self._loop = asyncio.get_running_loop()
        self.lost: asyncio.Future[Exception] = self._loop.create_future()
        self.agreed: asyncio.Future[None] = self._loop.create_future()
        self._thread = threading.get_ident()
        self._socket = opened
        self._core = core
        self._lock = lock
        self._after_reading = after_reading
        self._reader: DispatchReader | None = None
        self._left: memoryview | bytes = b""
        self._is_over = self._is_left = self._is_scheduled = self._is_writing = False
        self._timer: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        """Say hello, and read what comes."""
        self._loop.add_reader(self._socket, self._read)
        with self._lock:
            self._write(self.wire.greeting())

    # Reading

    def _read(self) -> None:
        try:
            data = self._socket.recv(RECEIVE_BYTES)
        except BlockingIOError:
            return
        except OSError as error:
            self.lose(error)
            return
        try:
            self._take_data(data)
        except (*LINK_ERRORS, MessagingError) as error:
            self.lose(error)
        self._after_reading()

    def _take_data(self, data: bytes) -> None:
        frames = self.wire.receive(data, time.monotonic())
        if self._reader is None:
            if not self.wire.is_agreed:
                return
            self._agree()
        reader = self._reader
        assert reader is not None
        read, decode = reader.read, self.wire.codec.decode
        commands: list[Delivery | Structure] = [
            read(frame) if frame[0] == DISPATCH else decode(frame)[0] for frame in frames
        ]
        with self._lock:
            if self._core.error is None and not self._is_over and not self._is_left:
                self._core.receive(commands)
                if self._core.outbox.is_urgent:
                    self.flush()

    def _agree(self) -> None:
        self._reader = DispatchReader(self.wire.codec)
        with self._lock:
            if self._core.error is None and not self._is_over:
                self._core.link_made(self.wire.codec, str(self.address))
                self.flush()
        if not self.agreed.done():
            self.agreed.set_result(None)
        self._check_clock()

    # Writing; the lock is held

    def flush(self) -> None:
        """Write what waits, as much of it as the system takes."""
        self._is_scheduled = False
        outbox = self._core.outbox
        while outbox.frames and not self._left and not self._is_over and self._reader is not None:
            self._write(outbox.take_all())

    def schedule(self) -> None:
        """Write what waits in the next round of the event loop; for any thread."""
        if not self._is_scheduled:
            self._is_scheduled = True
            self._call(self._flush_soon)

    def _flush_soon(self) -> None:
        with self._lock:
            self.flush()

    def _write(self, data: bytes) -> None:
        try:
            sent = self._socket.send(data)
        except BlockingIOError:
            sent = 0
        except OSError as error:
            self._call(self.lose, error)
            return
        self._note_written(sent)
        if sent < len(data):
            self._left = memoryview(data)[sent:]
            self._call(self._want_to_write)

    def _note_written(self, count: int) -> None:
        if count:
            self.wire.last_sent = time.monotonic()
            if self._reader is not None:
                self._core.outbox.written(count)

    def _want_to_write(self) -> None:
        if self._left and not self._is_writing and not self._is_over:
            self._is_writing = True
            self._loop.add_writer(self._socket, self._write_left)

    def _write_left(self) -> None:
        with self._lock:
            if self._left:
                try:
                    sent = self._socket.send(self._left)
                except BlockingIOError:
                    return
                except OSError as error:
                    self._call(self.lose, error)
                    return
                self._left = self._left[sent:]
                self._note_written(sent)
            if not self._left:
                self._left = b""
                self.flush()
            if not self._left and self._is_writing:
                self._is_writing = False
                self._loop.remove_writer(self._socket)

    def _call(self, callback: Callable[..., None], *arguments: Exception) -> None:
        """Have the event loop call something soon."""
        if threading.get_ident() == self._thread:
            self._loop.call_soon(callback, *arguments)
        else:
            try:
                self._loop.call_soon_threadsafe(callback, *arguments)
            except RuntimeError:
                # The event loop has ended, and the link with it.
                self._is_over = True

    # Time

    def _check_clock(self) -> None:
        """See whether the broker lives, and tell it that we do."""
        if self._is_over:
            return
        now = time.monotonic()
        try:
            if self.wire.check_silence(now):
                with self._lock:
                    # With something on its way there is no need for a sign of life.
                    if not self._left and self._core.outbox.codec is not None:
                        self._core.keep_alive()
                        self.flush()
                self.wire.last_sent = now
        except TimeoutError as error:
            self.lose(error)
            return
        at = self.wire.check_at()
        if at is not None:
            self._timer = self._loop.call_later(max(0.001, at - now), self._check_clock)

    # The end

    def forsake(self) -> None:
        """In a process that was forked: give up the descriptor, and touch nothing else.

        The event loop and the lock are those of the process that goes on.
        """
        self._socket.close()

    def leave(self, reason: Exception) -> None:
        """End the link for a better one; for any thread, which holds the lock."""
        self.flush()
        self._is_left = True
        self._call(self.lose, reason)

    def lose(self, error: Exception) -> None:
        """End the link, once; to be called in its event loop."""
        if self._is_over:
            return
        self._is_over = True
        self._loop.remove_reader(self._socket)
        if self._is_writing:
            self._loop.remove_writer(self._socket)
        if self._timer is not None:
            self._timer.cancel()
        with self._lock:
            self._left = b""
        self._socket.close()
        if not self.agreed.done():
            self.agreed.set_exception(error)
            # The one who waits may have gone.
            self.agreed.exception()
        if not self.lost.done():
            self.lost.set_result(error)
