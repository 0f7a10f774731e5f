"""Frames on their way out: what a link is to write next."""

from lockkeeper.client.core.encoding import reencoded
from lockkeeper.client.core.waiting import WaitLine
from lockkeeper.message.openwire import Codec, Structure

BUFFER_BYTES = 64 * 1024
"""So many bytes of what may wait are written all the same."""
FULL_BYTES = 1024 * 1024
"""With more than that on its way, whoever sends messages waits."""


class Outbox:
    """Frames for the link there is; `codec` is None while there is none.

    A link takes the frames by `take_all` and says by `written` what is off; `unwritten` counts
    what it has taken and could not write yet.
    """

    def __init__(self) -> None:
        self.codec: Codec | None = None
        self._codec_before: Codec | None = None
        self.frames: list[bytes] = []
        self._loose: list[bytes] = []
        self.size = 0
        self.unwritten = 0
        self.is_urgent = False
        self.drained = WaitLine()

    @property
    def is_full(self) -> bool:
        """Tell whether senders of messages have to wait."""
        return self.size + self.unwritten > FULL_BYTES

    def put_frame(self, frame: bytes, is_urgent: bool = True) -> None:
        """Add a frame; one that is not urgent may wait for the next that is."""
        self.frames.append(frame)
        self.size += len(frame)
        if is_urgent or self.size >= BUFFER_BYTES:
            self.is_urgent = True

    def put_loose(self, frame: bytes) -> None:
        """Add a message that nobody confirms; if it is not taken, the next link gets it."""
        self._loose.append(frame)
        self.put_frame(frame)

    def put_command(self, command: Structure, is_urgent: bool = True) -> None:
        """Add a command; there must be a link."""
        assert self.codec is not None
        body = self.codec.encode(command)
        self.put_frame(len(body).to_bytes(4, "big") + body, is_urgent)

    def take_all(self) -> bytes:
        """Return everything that waits, to be written now."""
        data = self.frames[0] if len(self.frames) == 1 else b"".join(self.frames)
        self.frames.clear()
        self._loose.clear()
        self.size = 0
        self.is_urgent = False
        self.unwritten += len(data)
        return data

    def written(self, count: int) -> None:
        """Note that the system has taken *count* bytes."""
        self.unwritten -= count
        if self.drained.waiters and not self.is_full:
            self.drained.wake()

    def open(self, codec: Codec) -> list[bytes]:
        """Begin with a link; return the messages that the one before has not got."""
        loose, self._loose = self._loose, []
        before, self._codec_before = self._codec_before, codec
        self._clear()
        self.codec = codec
        if before is None or before.version == codec.version:
            return loose
        return [reencoded(frame, before, codec) for frame in loose]

    def close(self) -> None:
        """Forget everything but messages that nobody confirms: the link is lost."""
        self._clear()
        self.codec = None
        self.drained.wake()

    def _clear(self) -> None:
        self.frames.clear()
        self.size = self.unwritten = 0
        self.is_urgent = False
