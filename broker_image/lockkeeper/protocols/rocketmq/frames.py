"""Frames: an int32 size, and behind it an int32 with the header's encoding and size, and a body."""

from struct import Struct
from typing import Final, TypeAlias

from lockkeeper.protocols.rocketmq.errors import ProtocolError

_SIZE: Final = Struct(">i")
LENGTH_BYTES: Final = 4
HEADER_LENGTH_BYTES: Final = 4
# A view is part of a large message, which others may be sent, too.
Piece: TypeAlias = bytes | memoryview


class FrameBuffer:
    """Bytes that have come and are not carried out: whole frames are taken one by one.

    `missing` is what the frame that is there in part still needs.
    """

    __slots__ = ("_data", "_start", "frame_bytes_max", "missing")

    def __init__(self, frame_bytes_max: int) -> None:
        self.frame_bytes_max = frame_bytes_max
        self.missing = 0
        self._data = bytearray()
        self._start = 0

    def __len__(self) -> int:
        """Return how many bytes there are."""
        return len(self._data) - self._start

    def feed(self, data: bytes) -> None:
        """Take bytes."""
        if self._start:
            del self._data[: self._start]
            self._start = 0
        self._data += data

    def take_frame(self) -> bytes | None:
        """Return the next whole frame without its size, or None. Raises ProtocolError."""
        start, there = self._start, len(self._data) - self._start
        if there < LENGTH_BYTES:
            self.missing = LENGTH_BYTES - there
            return None
        (size,) = _SIZE.unpack_from(self._data, start)
        if not HEADER_LENGTH_BYTES <= size <= self.frame_bytes_max:
            raise ProtocolError(
                f"a frame of {size} bytes; this listener takes {HEADER_LENGTH_BYTES} to "
                f"{self.frame_bytes_max} (frameBytesMax)"
            )
        if there < LENGTH_BYTES + size:
            self.missing = LENGTH_BYTES + size - there
            return None
        end = start + LENGTH_BYTES + size
        self._start, self.missing = end, 0
        with memoryview(self._data) as view:
            return bytes(view[start + LENGTH_BYTES : end])


def framed(header_mark: int, header: bytes, body_bytes: int) -> bytes:
    """Return what comes before a body of so many bytes: size, header's mark and size, header."""
    size = HEADER_LENGTH_BYTES + len(header) + body_bytes
    return _SIZE.pack(size) + (header_mark << 24 | len(header)).to_bytes(4, "big") + header
