"""The turns of a broker: commands first, then dispatch, writes, and the store.

One event loop, one thread. All that arrives in one round of the loop is carried out before
anything is dispatched; every connection is written to once a turn; and the store begins its
write last, so that an acknowledgement can still overtake it.
"""

import asyncio
import logging
import time
from collections.abc import Callable

from lockkeeper.broker.core import Broker
from lockkeeper.server.flow_log import FlowLog
from lockkeeper.server.recorder import FlightRecorder
from lockkeeper.store.base import Store, StoreError
from lockkeeper.store.kahadb import Deadline
from lockkeeper.transport.peer import Peer

logger = logging.getLogger(__name__)

HEARTBEAT_SECONDS = 0.5
HANDSHAKE_MS_MAX = 30_000
# A process whose heart stopped for so long may have been frozen, and another be master by now.
LATE_BEAT_MS = 2_000


class Engine:
    """Drives one core and its store."""

    def __init__(
        self,
        broker: Broker,
        store: Store,
        recorder: FlightRecorder,
        fail: Callable[[StoreError], None],
        deadline: Deadline | None = None,
    ) -> None:
        """*fail* is called once when the store can no longer be trusted.

        Past the *deadline* nothing is answered.
        """
        self.broker = broker
        self.store = store
        self.recorder = recorder
        self.now = _clock()
        self.peers: set[Peer] = set()
        self._fail = fail
        self._deadline = deadline
        self._flow_log = FlowLog(broker)
        self._loop = asyncio.get_running_loop()
        self._scheduled = False
        self._calls = 0
        self._is_closed = False
        self._beaten_at = self.now
        self._waited_for = 0
        # What a flush left behind, trace records above all, is nothing new to note the time of.
        self._left_waiting = 0
        self._throttled: list[Peer] = []
        self._alarm: asyncio.TimerHandle | None = None
        self._alarm_due = 0
        self._heartbeat = self._loop.call_later(HEARTBEAT_SECONDS, self._beat)
        descriptor = store.fileno()
        if descriptor is not None:
            self._loop.add_reader(descriptor, self._written)

    # What sockets ask for

    def stamp(self) -> int:
        """Read the clock (ms since the epoch) and tell the core."""
        self.now = self.broker.context.now = _clock()
        return self.now

    def wake(self) -> None:
        """Have a turn at the end of this round of the event loop."""
        self._calls += 1
        if not self._scheduled and not self._is_closed:
            self._scheduled = True
            self._loop.call_soon(self._turn)

    def joined(self, peer: Peer) -> None:
        """Note a new peer."""
        self.peers.add(peer)

    def left(self, peer: Peer) -> None:
        """Forget a peer."""
        self.peers.discard(peer)

    def throttled(self, peer: Peer) -> None:
        """Look at the peer again after each turn, until it may be read from."""
        self._throttled.append(peer)

    # Turns

    def _turn(self) -> None:
        self._scheduled = False
        if self._is_closed:
            return
        try:
            self._look_up_after_sleep(self.stamp())
            self.broker.tick(self.now)
            if self._deadline is not None:
                self._deadline.check()
            self._write()
            self._commit()
        except StoreError as error:
            self._stop_on(error)
        if self._throttled:
            self._look_at_throttled()
        self._set_alarm()

    def _write(self) -> None:
        """Send every connection what it is due, once."""
        broker = self.broker
        dirty = broker.dirty
        while dirty:
            connections = dirty[:]
            dirty.clear()
            for connection in connections:
                peer = connection.tag
                if isinstance(peer, Peer):
                    peer.flush()

    def _commit(self) -> None:
        """Begin the store's write, unless more keeps arriving this very moment."""
        waiting = self.store.waiting()
        calls, self._calls = self._calls, 0
        if calls > 1 and waiting > self._waited_for:
            # Several peers are at work. One more look at the sockets first: what they bring
            # shares the same sync.
            self._waited_for = waiting
            self.wake()
            return
        self._waited_for = 0
        if waiting > self._left_waiting:
            self.recorder.before_write(self.now)
        receipts = self.store.flush()
        self._left_waiting = self.store.waiting()
        if receipts:
            self.broker.settle(receipts)
            self.wake()

    def _written(self) -> None:
        """Go on with what the disk has finished."""
        try:
            self._look_up_after_sleep(self.stamp())
            self.broker.settle(self.store.completed())
        except StoreError as error:
            self._stop_on(error)
        self.wake()

    def _look_up_after_sleep(self, now: int) -> None:
        """Make sure that this is still the master before anything is written or answered."""
        if now - self._beaten_at > LATE_BEAT_MS:
            self._beaten_at = now
            self.store.maintain(now)

    def _stop_on(self, error: StoreError) -> None:
        logger.critical("the store failed, so the broker stops: %s", error)
        self.close()
        self._fail(error)

    def _look_at_throttled(self) -> None:
        throttled, self._throttled = self._throttled, []
        for peer in throttled:
            peer.throttle()
            if peer.session.connection.stalled:
                self._throttled.append(peer)

    def _set_alarm(self) -> None:
        """Have a turn when the core's next timer is due."""
        due = self.broker.next_deadline()
        if due is None or (self._alarm is not None and self._alarm_due <= due):
            return
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm_due = due
        self._alarm = self._loop.call_later(max(0, due - self.now) / 1000, self._ring)

    def _ring(self) -> None:
        self._alarm = None
        self.wake()

    # Heartbeat

    def _beat(self) -> None:
        """Do what is due from time to time: inactivity, the store's upkeep."""
        self._heartbeat = self._loop.call_later(HEARTBEAT_SECONDS, self._beat)
        now = self._beaten_at = self.stamp()
        try:
            if self._deadline is not None:
                self._deadline.check()
            self.store.maintain(now)
            self._flow_log.look(now)
            for peer in list(self.peers):
                self._check_activity(peer, now)
            self.recorder.look(now)
        except StoreError as error:
            self._stop_on(error)
        self.wake()

    def _check_activity(self, peer: Peer, now: int) -> None:
        """Drop a silent peer; send one a sign of life (openwire.md section 7.1)."""
        allowed = peer.session.inactivity_duration
        if not peer.session.is_open:
            allowed = HANDSHAKE_MS_MAX
        if peer.session.connection.stalled:
            # It is the broker that does not read.
            peer.received_at = now
        if not allowed:
            return
        if now - peer.received_at > allowed:
            logger.warning(
                "%s was silent for %d ms: disconnected", peer.session.connection.address, allowed
            )
            peer.abort()
        elif peer.session.is_open and now - peer.sent_at >= allowed // 3:
            peer.session.keep_alive()
            peer.flush()

    def close(self) -> None:
        """Stop turning; sockets are aborted, the store is left to its owner."""
        self._is_closed = True
        self._heartbeat.cancel()
        if self._alarm is not None:
            self._alarm.cancel()
        descriptor = self.store.fileno()
        if descriptor is not None:
            self._loop.remove_reader(descriptor)
        for peer in list(self.peers):
            peer.abort()


def _clock() -> int:
    return time.time_ns() // 1_000_000
