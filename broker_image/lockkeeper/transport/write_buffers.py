"""Shares of the write buffers: how many bytes may wait to be sent to each peer."""

from typing import Protocol

# The kernel's buffer and this much more may wait for a slow peer before dispatch to it stops;
# less where many peers share what all of them may have.
WRITE_BUFFER_BYTES = 1 << 20
WRITE_BUFFER_BYTES_MIN = 1 << 15
WRITE_BUFFERS_BYTES = 16 << 20
# So many peers may have as much as one may ever have.
_FEW = WRITE_BUFFERS_BYTES // WRITE_BUFFER_BYTES


class Buffered(Protocol):
    """A peer that is sent to."""

    def buffer(self, size: int) -> None:
        """Let *size* bytes wait to be sent before dispatch stops."""


class WriteBuffers:
    """The peers there are, and what each may let wait.

    All have the same share. It is for somewhat more peers than there are, so that not every peer
    that comes or goes changes the shares of all others.
    """

    def __init__(self) -> None:
        self._peers: set[Buffered] = set()
        self._planned = _FEW

    @property
    def share(self) -> int:
        """The bytes that may wait for each peer."""
        return max(WRITE_BUFFER_BYTES_MIN, WRITE_BUFFERS_BYTES // self._planned)

    def join(self, peer: Buffered) -> None:
        """Give a new peer its share, and the others less where there are many now."""
        self._peers.add(peer)
        if len(self._peers) > self._planned:
            self._plan()
        peer.buffer(self.share)

    def leave(self, peer: Buffered) -> None:
        """Forget a peer, and give the others more where few are left."""
        self._peers.discard(peer)
        if len(self._peers) < self._planned // 2 and self._planned > _FEW:
            self._plan()

    def _plan(self) -> None:
        before = self.share
        self._planned = max(_FEW, len(self._peers) * 5 // 4)
        if self.share != before:
            for peer in self._peers:
                peer.buffer(self.share)
