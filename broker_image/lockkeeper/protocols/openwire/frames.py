"""Frames: an int32 size and that many bytes (openwire.md section 1)."""

from typing import Final, TypeAlias

from lockkeeper.protocols.openwire.errors import ProtocolError

# A view is part of a large message, which others may be sent, too.
Piece: TypeAlias = bytes | memoryview

SMALL_BYTES: Final = 4096
"""Pieces below are put together as they come."""


class FrameBuffer:
    """Joins what arrives in pieces; whole frames are read in place by the session.

    `feed` returns the bytes to read from now on and `keep` takes back what is left of them.
    Pieces of a large frame are joined once, when it is whole; it costs what arrived of it,
    however small the pieces are.
    """

    __slots__ = ("_missing", "_pieces", "frame_bytes_max")

    def __init__(self, frame_bytes_max: int) -> None:
        self.frame_bytes_max = frame_bytes_max
        self._pieces: list[bytes | bytearray] = []
        self._missing = 0

    def feed(self, data: bytes) -> bytes | None:
        """Return everything received and not read yet, or None while a frame is incomplete."""
        if not self._pieces:
            return data
        pieces = self._pieces
        if len(data) >= SMALL_BYTES:
            pieces.append(data)
        elif type(last := pieces[-1]) is bytearray:
            last += data
        else:
            pieces.append(bytearray(data))
        self._missing -= len(data)
        if self._missing > 0:
            return None
        joined = b"".join(self._pieces)
        self._pieces.clear()
        return joined

    def keep(self, data: bytes, position: int) -> None:
        """Keep what is left of *data* from *position* on: the beginning of a frame."""
        rest = data[position:]
        self._pieces.append(rest)
        wanted = 4
        if len(rest) >= 4:
            wanted += self.check_size(int.from_bytes(rest[:4], "big"))
        self._missing = wanted - len(rest)

    def check_size(self, size: int) -> int:
        """Return *size* if a frame may have it. Raises ProtocolError."""
        if not 0 < size <= self.frame_bytes_max:
            raise ProtocolError(
                f"a frame of {size} bytes; this listener takes 1 to {self.frame_bytes_max} "
                "(frameBytesMax)"
            )
        return size


def framed(body: bytes) -> bytes:
    """Return *body* as a frame."""
    return len(body).to_bytes(4, "big") + body
