"""What may wait to be sent to all peers together has a bound, whoever came first."""

from hypothesis import given
from hypothesis import strategies as st

from lockkeeper.transport.write_buffers import (
    WRITE_BUFFER_BYTES,
    WRITE_BUFFER_BYTES_MIN,
    WRITE_BUFFERS_BYTES,
    WriteBuffers,
)


class Listener:
    """A peer that knows only its share."""

    size = 0

    def buffer(self, size: int) -> None:
        """Note the share."""
        self.size = size


@given(st.lists(st.integers(-400, 600), max_size=8))
def test_all_together_have_no_more_than_the_bound(changes: list[int]) -> None:
    buffers = WriteBuffers()
    peers: list[Listener] = []
    for change in changes:
        for _ in range(change):
            peers.append(Listener())
            buffers.join(peers[-1])
        for _ in range(min(len(peers), -change)):
            buffers.leave(peers.pop())
        assert {peer.size for peer in peers} <= {buffers.share}
        least = len(peers) * WRITE_BUFFER_BYTES_MIN
        assert sum(peer.size for peer in peers) <= max(WRITE_BUFFERS_BYTES, least)


def test_few_have_as_much_as_one_may_have() -> None:
    buffers = WriteBuffers()
    peers = [Listener() for _ in range(16)]
    for peer in peers:
        buffers.join(peer)
    assert [peer.size for peer in peers] == [WRITE_BUFFER_BYTES] * 16


def test_those_that_stay_have_more_again_when_many_have_left() -> None:
    buffers = WriteBuffers()
    peers = [Listener() for _ in range(300)]
    for peer in peers:
        buffers.join(peer)
    assert peers[0].size < WRITE_BUFFER_BYTES // 16
    for peer in peers[4:]:
        buffers.leave(peer)
    assert [peer.size for peer in peers[:4]] == [WRITE_BUFFER_BYTES] * 4
