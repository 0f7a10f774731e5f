"""Reading from a connection over TLS: decrypted into one room for all, and copied once.

Event loops have TLS decrypt each record into 256 KiB of its own, which then shrink to what came.
For a message of 1 KB that costs about as much as all else, where so large a block of memory is
mapped and given back each time (`server.allocator`).
"""

import asyncio

from lockkeeper.transport.peer import Peer

READ_BYTES = 256 << 10


class EncryptedReader(asyncio.BufferedProtocol):
    """Brings what was decrypted to its peer.

    The *room* of `READ_BYTES` is shared by connections of one event loop: it is filled and read
    without anybody else having a turn.
    """

    __slots__ = ("_peer", "_room")

    def __init__(self, peer: Peer, room: memoryview) -> None:
        self._peer = peer
        self._room = room

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return where the next bytes go."""
        return self._room

    def buffer_updated(self, nbytes: int) -> None:
        """Bring the peer *nbytes*, at least 1."""
        self._peer.data_received(bytes(self._room[:nbytes]))

    def pause_writing(self) -> None:
        """See `Peer.pause_writing`."""
        self._peer.pause_writing()

    def resume_writing(self) -> None:
        """See `Peer.resume_writing`."""
        self._peer.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """See `Peer.connection_lost`."""
        self._peer.connection_lost(exc)
