"""Inactivity of peers: each is looked at when something may be due, however many there are.

A peer that brings bytes, or is sent some, is not moved: when it is looked at, and nothing is due,
it is put off until something may be. Peers that have not logged in, or have ended their
connection, are few, and looked at with every heartbeat.
"""

import logging

from lockkeeper.server.strangers import Strangers
from lockkeeper.transport.peer import Peer

logger = logging.getLogger(__name__)

FAREWELL_MS_MAX = 10_000
# Peers that are due within the same span are looked at together, with the first heartbeat in it.
SPAN_MS = 500


class Activity:
    """The peers there are, and when each is to be looked at; times in ms of `Driver.steady`.

    Nothing is ever due for an open peer without a limit. `looks` counts how often any peer was
    looked at.
    """

    def __init__(self, strangers: Strangers) -> None:
        self._strangers = strangers
        self._places: dict[Peer, dict[Peer, None]] = {}
        # With the next heartbeat; by number of their span of time; never, which stays empty.
        self._soon: dict[Peer, None] = {}
        self._spans: dict[int, dict[Peer, None]] = {}
        self._never: dict[Peer, None] = {}
        # Silent for too long when they were looked at, and since when.
        self._suspects: dict[Peer, int] = {}
        self.looks = 0

    def join(self, peer: Peer) -> None:
        """Note a new peer."""
        self._places[peer] = self._soon
        self._soon[peer] = None

    def leave(self, peer: Peer) -> None:
        """Forget a peer."""
        self._suspects.pop(peer, None)
        place = self._places.pop(peer, None)
        if place is not None:
            place.pop(peer, None)

    def hasten(self, peer: Peer) -> None:
        """Look at a peer, if it has not left, with the next heartbeat."""
        place = self._places.get(peer)
        if place is not None:
            place.pop(peer, None)
            self.join(peer)

    def due(self, steady: int) -> list[Peer]:
        """Return who is to be looked at now, and again with the next heartbeat if that fails."""
        for number in [number for number in self._spans if number <= steady // SPAN_MS]:
            for peer in self._spans.pop(number):
                self.join(peer)
        return [*self._soon]

    def look_at(self, peer: Peer, steady: int) -> None:
        """Drop a silent peer; send one a sign of life (openwire.md section 7.1).

        It is dropped when nothing came until the next look, either: where the process was kept
        from running, what the peer said meanwhile waits to be read between two heartbeats.
        """
        self.looks += 1
        session = peer.session
        allowed, is_open = session.inactivity_duration, session.is_open
        if not is_open and peer not in self._strangers:
            # It ended its connection in words, but not the socket.
            self._strangers.came(peer, steady, FAREWELL_MS_MAX)
        if peer.is_excused():
            peer.received_at = steady
        is_silent = bool(allowed) and steady - peer.received_at > allowed
        if is_silent and self._suspects.get(peer) == peer.received_at:
            logger.warning("%s was silent for %d ms: disconnected", peer.address, allowed)
            peer.abort()
        elif allowed and is_open and steady - peer.sent_at >= allowed // 3:
            session.keep_alive()
            peer.flush()
        if is_silent and peer in self._places:
            self._suspects[peer] = peer.received_at
        elif self._suspects:
            self._suspects.pop(peer, None)
        if is_open and peer in self._places:
            self._put_off(peer, allowed, steady)

    def _put_off(self, peer: Peer, allowed: int, steady: int) -> None:
        """Look at a peer again when it may be due."""
        due = min(peer.received_at + allowed + 1, peer.sent_at + allowed // 3)
        if not allowed:
            place = self._never
        elif due // SPAN_MS <= steady // SPAN_MS:
            return
        else:
            place = self._spans.setdefault(due // SPAN_MS, {})
            place[peer] = None
        self._places[peer] = place
        del self._soon[peer]
