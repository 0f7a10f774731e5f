"""One link's bytes: the handshake, frames in, and when silence has lasted too long."""

from lockkeeper.message.openwire import Codec, WireFormatInfo, decode, encode
from lockkeeper.protocols.openwire.agreement import Agreement
from lockkeeper.protocols.openwire.codec import agree, offer
from lockkeeper.protocols.openwire.errors import ProtocolError
from lockkeeper.protocols.openwire.frames import FrameBuffer, framed
from lockkeeper.protocols.settings import ListenerSettings


class Wire:
    """Reads what a broker sends over one link; times in seconds of one clock."""

    def __init__(self, settings: ListenerSettings, name: str, now: float) -> None:
        """*name* is the broker's, for errors."""
        self.name = name
        self.last_sent = self.last_received = self._opened = now
        self._settings = settings
        self._buffer = FrameBuffer(settings.frame_bytes_max)
        self._agreement: Agreement | None = None

    def greeting(self) -> bytes:
        """Return what is to be sent first."""
        return framed(encode(offer(self._settings)))

    @property
    def is_agreed(self) -> bool:
        """Tell whether both sides know how to talk."""
        return self._agreement is not None

    @property
    def codec(self) -> Codec:
        """The codec of the version both sides know."""
        assert self._agreement is not None
        return self._agreement.codec

    def receive(self, data: bytes, now: float) -> list[bytes]:
        """Return the frames that are whole now, without their sizes.

        Raises ProtocolError or MalformedMessageError, ConnectionResetError at the end of data.
        """
        if not data:
            raise ConnectionResetError(f"{self.name} closed the connection")
        self.last_received = now
        fed = self._buffer.feed(data)
        if fed is None:
            return []
        frames = self._split(fed)
        if self._agreement is None and frames:
            self._agree(frames.pop(0))
        return frames

    def _split(self, data: bytes) -> list[bytes]:
        frames = []
        position, length = 0, len(data)
        while length - position >= 4:
            start = position + 4
            end = start + self._buffer.check_size(int.from_bytes(data[position:start], "big"))
            if end > length:
                break
            frames.append(data[start:end])
            position = end
        if position < length:
            self._buffer.keep(data, position)
        return frames

    def _agree(self, frame: bytes) -> None:
        peer, _ = decode(frame)
        if not isinstance(peer, WireFormatInfo):
            raise ProtocolError(f"{type(peer).__name__} before the WireFormatInfo")
        self._agreement = agree(self._settings, peer)

    # Silence (openwire.md section 7.1)

    @property
    def _period(self) -> float:
        return 0.0 if self._agreement is None else self._agreement.inactivity_duration / 3000

    def check_at(self) -> float | None:
        """Return when to look at the clock again; None for never."""
        if not self._period:
            return None
        return min(self._silence_ends, self.last_sent + self._period)

    @property
    def silence_max(self) -> float | None:
        """Seconds that the broker may be silent; None: for ever, or not agreed yet."""
        return 3 * self._period or None

    @property
    def _silence_ends(self) -> float:
        """When the broker has been silent for too long; the checks begin after a first delay."""
        agreed = self._agreement
        assert agreed is not None
        return max(
            self.last_received + agreed.inactivity_duration / 1000,
            self._opened + agreed.inactivity_initial_delay / 1000,
        )

    def check_silence(self, now: float) -> bool:
        """Tell whether to send a sign of life. Raises TimeoutError when the broker is silent."""
        if not self._period:
            return False
        if now >= self._silence_ends:
            duration = 3 * self._period
            raise TimeoutError(f"{self.name} has been silent for {duration:g} s")
        return now - self.last_sent >= self._period
