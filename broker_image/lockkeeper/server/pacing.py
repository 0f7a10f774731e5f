"""Pace of reading: no faster than the journal writes, and from everybody in turn.

A peer that has brought its share is not read from until everybody else had a turn, and until
the journal has taken what came before. Its acknowledgements wait as long as its messages do.

While frames that are not whole take much memory, they are read on one after the other: that of a
peer as long as it comes, then it is the turn of those that wait.
"""

from collections.abc import Callable
from typing import Final

from lockkeeper.broker.core import Broker
from lockkeeper.store.base import Store, StoreFullError
from lockkeeper.transport.peer import PIECE_BYTES, Peer

SHARE_BYTES = PIECE_BYTES
"""What a peer may bring in one round; a last piece may make it twice as much."""
UNWRITTEN_BYTES_MAX: Final = 1 << 20
PARTIAL_BYTES_MAX: Final = 16 << 20
"""While frames that are not whole have more, only one of them is read on."""
PATIENCE_MS: Final = 100
"""In this time a peer brings a share of its frame, else it is the turn of another one's."""
TURN_MS_MAX: Final = 10_000
"""How long the others wait for a frame that does come."""
RESUMED_MAX: Final = 16
"""How many peers that rested are read from again in one turn."""


class Pacing:
    """The peers that rest, those that have rested longest first.

    A round lasts a turn, or until the journal has caught up: while it has not, pacing `is_strict`,
    and every piece counts, however small. `unwritten` counts what was read since the journal was
    seen to have taken everything, in bytes: at least what waits for it now.
    """

    def __init__(self, store: Store, broker: Broker, wake: Callable[[], None]) -> None:
        """*wake* asks for another turn."""
        self._store = store
        self._broker = broker
        self._memory = broker.memory
        self._favourite: Peer | None = None
        # Until when the favourite is to bring its next share, and all of its frame.
        self._share_due = self._frame_due = 0
        self._brought = 0
        self._is_watched = False
        self._wake = wake
        self._round = 0
        self.resting: dict[Peer, None] = {}
        self.unwritten = 0
        self.is_strict = False

    def received(self, peer: Peer, size: int) -> None:
        """Count *size* bytes that were read from a peer; let it rest if that is its share."""
        if peer is self._favourite:
            self._brought += size
            if self._brought >= SHARE_BYTES:
                self._expect_share()
        if peer.round == self._round:
            size += peer.taken
        else:
            peer.round = self._round
        peer.taken = size
        is_enough = size >= SHARE_BYTES or self._keeps_from(peer)
        if is_enough and not peer.is_resting:
            self.resting[peer] = None
            peer.rest(True)

    def forget(self, peer: Peer) -> None:
        """Forget a peer that is gone."""
        self.resting.pop(peer, None)
        if peer is self._favourite:
            self._favourite = None

    def end_turn(self) -> None:
        """Go on with those that rest, unless the journal is behind."""
        if not self._store.is_behind():
            self.unwritten = 0
        self.is_strict = self.unwritten > UNWRITTEN_BYTES_MAX and not self._is_full()
        if self.is_strict:
            return
        self._round += 1
        if self.resting:
            self._resume()

    def _resume(self) -> None:
        able: list[Peer] = []
        for peer in self.resting:
            if self._keeps_from(peer):
                if not self._is_turn_over():
                    continue
                self._begin_turn(peer)
            able.append(peer)
        for peer in able[:RESUMED_MAX]:
            del self.resting[peer]
            if peer is self._favourite:
                self._expect_share()
            peer.rest(False)
        if len(able) > RESUMED_MAX:
            self._wake()
        elif self.resting:
            self._watch()

    def _keeps_from(self, peer: Peer) -> bool:
        """Tell whether a peer has to wait with its large frame until it is its turn."""
        if self._memory.partial <= PARTIAL_BYTES_MAX:
            self._favourite = None
            return False
        if not peer.session.partial:
            return False
        return peer is not self._favourite or self._is_turn_over()

    def _is_turn_over(self) -> bool:
        favourite, now = self._favourite, self._broker.steady
        if favourite is None or not favourite.session.partial:
            return True
        return now >= self._share_due or now >= self._frame_due

    def _begin_turn(self, peer: Peer) -> None:
        self._favourite = peer
        self._frame_due = self._broker.steady + TURN_MS_MAX
        self._expect_share()

    def _expect_share(self) -> None:
        self._brought = 0
        self._share_due = self._broker.steady + PATIENCE_MS

    def _watch(self) -> None:
        """Look at those that rest again when the favourite has had its time."""
        if not self._is_watched:
            self._is_watched = True
            self._broker.call_after(PATIENCE_MS, self._look_again)

    def _look_again(self) -> None:
        # At the end of this turn all are looked at.
        self._is_watched = False

    def _is_full(self) -> bool:
        """Tell whether the journal waits for room: then sends do, each by itself."""
        try:
            self._store.check_full()
        except StoreFullError:
            return True
        return False
