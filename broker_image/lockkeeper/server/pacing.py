"""Pace of reading: no faster than the journal writes, and from everybody in turn.

A peer that has brought its share is not read from until everybody else had a turn, and until
the journal has taken what came before. Its acknowledgements wait as long as its messages do.
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
"""While frames that are not whole have so much, only one of them is read on."""
PATIENCE_MS: Final = 2_000
"""How long the others wait for a peer that brings no more of its frame."""
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
        self._wake = wake
        self._round = 0
        self.resting: dict[Peer, None] = {}
        self.unwritten = 0
        self.is_strict = False

    def received(self, peer: Peer, size: int) -> None:
        """Count *size* bytes that were read from a peer; let it rest if that is its share."""
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
        able = [peer for peer in self.resting if not self._keeps_from(peer)]
        for peer in able[:RESUMED_MAX]:
            del self.resting[peer]
            peer.rest(False)
        if len(able) > RESUMED_MAX:
            self._wake()

    def _keeps_from(self, peer: Peer) -> bool:
        """Tell whether a peer has to wait with its large frame until another one is whole."""
        if self._memory.partial <= PARTIAL_BYTES_MAX:
            self._favourite = None
            return False
        if not peer.session.partial:
            return False
        favourite = self._favourite
        if (
            favourite is None
            or not favourite.session.partial
            or self._broker.steady - favourite.received_at > PATIENCE_MS
        ):
            favourite = self._favourite = peer
        return favourite is not peer

    def _is_full(self) -> bool:
        """Tell whether the journal waits for room: then sends do, each by itself."""
        try:
            self._store.check_full()
        except StoreFullError:
            return True
        return False
