"""One socket to one broker, from the handshake to its end.

One thread receives, another may send at the same time; sends are serialised by the caller.
"""

import selectors
import socket
import time
from collections.abc import Iterator

from lockkeeper.client.tls import SecureSocket
from lockkeeper.client.url import Address
from lockkeeper.message.errors import MalformedMessageError
from lockkeeper.message.openwire import Codec, Structure, WireFormatInfo, decode, encode
from lockkeeper.protocols.openwire.codec import Agreement, agree, offer
from lockkeeper.protocols.openwire.errors import ProtocolError
from lockkeeper.protocols.openwire.frames import FrameBuffer, framed
from lockkeeper.protocols.settings import ListenerSettings

RECEIVE_BYTES = 256 * 1024
LINK_ERRORS = (OSError, ProtocolError, MalformedMessageError)
"""What any call of a link may raise when the link is of no use any more."""


class UnsentError(TimeoutError):
    """The broker does not read for now: what is left must go before anything else does."""

    def __init__(self, text: str, left: bytes) -> None:
        super().__init__(text)
        self.left = left


def _dialled(address: Address, patience: float | None) -> "socket.socket | SecureSocket":
    """Return a connected socket that does not block, encrypted if need be. Raises OSError."""
    options = address.options
    dialled = socket.create_connection((address.host, address.port), patience)
    try:
        dialled.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, int(options.tcp_no_delay))
        dialled.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, int(options.keep_alive))
        if address.tls is not None:
            return SecureSocket(dialled, address.host, address.tls)
        dialled.setblocking(False)
    except BaseException:
        dialled.close()
        raise
    return dialled


class Link:
    """An open socket on which both sides have agreed how to talk (openwire.md section 1)."""

    def __init__(self, address: Address) -> None:
        """Dial *address* and shake hands. Raises one of LINK_ERRORS."""
        options = address.options
        self.address = address
        self._settings = ListenerSettings(
            options.frame_bytes_max, options.inactivity_duration, options.inactivity_initial_delay
        )
        self._buffer = FrameBuffer(options.frame_bytes_max)
        self._early: list[bytes] = []
        patience = options.connection_timeout / 1000 or None
        self._socket = _dialled(address, patience)
        self._readable = selectors.DefaultSelector()
        try:
            self._readable.register(self._socket, selectors.EVENT_READ)
            self.opened = self.last_sent = self.last_received = time.monotonic()
            self._agreement = self._shake_hands(patience)
        except BaseException:
            self.close()
            raise

    @property
    def codec(self) -> Codec:
        """The codec of the version both sides know."""
        return self._agreement.codec

    def _shake_hands(self, patience: float | None) -> Agreement:
        self.send(framed(encode(offer(self._settings))))
        deadline = None if patience is None else time.monotonic() + patience
        while not self._early:
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                raise TimeoutError(f"{self.address} accepts connections but does not answer")
            self._early.extend(self._receive_frames(left))
        peer, _ = decode(self._early.pop(0))
        if not isinstance(peer, WireFormatInfo):
            raise ProtocolError(f"{type(peer).__name__} before the WireFormatInfo")
        return agree(self._settings, peer)

    def receive(self) -> list[Structure]:
        """Return the commands that arrive next; empty when it is time to see to the clock.

        Raises one of LINK_ERRORS, also when the broker has been silent for too long.
        """
        frames, self._early = self._early, []
        if not frames:
            frames = list(self._receive_frames(self._wait_seconds()))
            if not frames:
                self._check_silence()
        decode_frame = self.codec.decode
        return [decode_frame(frame)[0] for frame in frames]

    def _wait_seconds(self) -> float | None:
        """Return how long to wait for the broker before it is time to see to the clock."""
        period = self._agreement.inactivity_duration / 3000
        if not period:
            return None
        return min(period, max(0.0, self._silence_ends - time.monotonic()))

    @property
    def _silence_ends(self) -> float:
        """When the broker has been silent for too long; the checks begin after a first delay."""
        agreed = self._agreement
        return max(
            self.last_received + agreed.inactivity_duration / 1000,
            self.opened + agreed.inactivity_initial_delay / 1000,
        )

    def _check_silence(self) -> None:
        duration = self._agreement.inactivity_duration / 1000
        if duration and time.monotonic() >= self._silence_ends:
            raise TimeoutError(f"{self.address} has been silent for {duration:g} s")

    def is_silent(self) -> bool:
        """Tell whether it is time to send a sign of life (openwire.md section 7.1)."""
        period = self._agreement.inactivity_duration / 3000
        return bool(period) and time.monotonic() - self.last_sent >= period

    def _receive_frames(self, seconds: float | None) -> Iterator[bytes]:
        if not self._readable.select(seconds):
            return
        try:
            data: bytes | None = self._socket.recv(RECEIVE_BYTES)
        except BlockingIOError:
            return
        if not data:
            raise ConnectionResetError(f"{self.address} closed the connection")
        self.last_received = time.monotonic()
        data = self._buffer.feed(data)
        if data is not None:
            yield from self._split(data)

    def _split(self, data: bytes) -> Iterator[bytes]:
        position, length = 0, len(data)
        while length - position >= 4:
            start = position + 4
            end = start + self._buffer.check_size(int.from_bytes(data[position:start], "big"))
            if end > length:
                break
            yield data[start:end]
            position = end
        if position < length:
            self._buffer.keep(data, position)

    def send(self, data: bytes, deadline: float | None = None) -> None:
        """Hand all of *data* to the system; blocks while the broker does not read. OSError.

        Past the *deadline* (of `time.monotonic`) it is UnsentError.
        """
        view = memoryview(data)
        while view:
            try:
                view = view[self._socket.send(view) :]
            except BlockingIOError:
                with selectors.DefaultSelector() as writable:
                    writable.register(self._socket, selectors.EVENT_WRITE)
                    left = None if deadline is None else max(0.0, deadline - time.monotonic())
                    if not writable.select(left):
                        raise UnsentError(f"{self.address} does not read", bytes(view)) from None
        self.last_sent = time.monotonic()

    def shut_down(self) -> None:
        """End the conversation; whoever sends or receives at this moment wakes up."""
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            return  # The other side was faster.

    def close(self) -> None:
        """Give the socket back; only when nobody uses it any more."""
        self._readable.close()
        self._socket.close()
