"""The turns of a broker: commands first, then dispatch, writes, and the store.

One event loop, one thread. All that arrives in one round of the loop is carried out before
anything is dispatched; every connection is written to once a turn; and the store begins its
write last, so that an acknowledgement can still overtake it.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Final

from lockkeeper.broker.connections import Sender
from lockkeeper.broker.containment import Contained
from lockkeeper.broker.core import Broker
from lockkeeper.broker.timers import NEVER
from lockkeeper.server.activity import Activity
from lockkeeper.server.flow_log import FlowLog
from lockkeeper.server.pacing import (
    PARTIAL_BYTES_MAX,
    SHARE_BYTES,
    UNWRITTEN_BYTES_MAX,
    Pacing,
)
from lockkeeper.server.recorder import FlightRecorder
from lockkeeper.server.strangers import Strangers
from lockkeeper.store.base import Store, StoreError
from lockkeeper.store.locker import Deadline, boot_milliseconds
from lockkeeper.transport.peer import Peer
from lockkeeper.transport.write_buffers import WriteBuffers

logger = logging.getLogger(__name__)

HEARTBEAT_SECONDS: Final = 0.5
# How long others have their turn between two parts of what the flight recorder notes.
RECORDING_SECONDS: Final = 0.01
# How long what waits for the journal may wait for company while more and more arrives.
GATHERING_SECONDS = 0.002
# A process whose heart stopped for so long may have been frozen, and another be master by now.
LATE_BEAT_MS: Final = 2_000
# So often a time that was read is used again in the same round of the event loop.
FRESH_USES: Final = 8
_SINCE_BOOT = time.CLOCK_BOOTTIME


class Engine:
    """Drives one core and its store."""

    def __init__(
        self,
        broker: Broker,
        store: Store,
        recorder: FlightRecorder,
        fail: Callable[[StoreError], None],
        deadline: Deadline | None = None,
        wall: Callable[[], int] | None = None,
    ) -> None:
        """*fail* is called once when the store can no longer be trusted.

        Past the *deadline* nothing is answered. *wall* is the clock that people see (ms since
        the epoch); it may be set, and nothing but messages goes by it. Once the engine
        `is_closed` nobody is served any more.
        """
        self.broker = broker
        self.store = store
        self.recorder = recorder
        self._wall = wall or _clock
        # The core's own time goes on from where it was when the core was made.
        self._steady_at_boot = broker.steady - boot_milliseconds()
        self.steady = broker.steady
        self._wall_ahead = self._wall() - self.steady
        self._fresh = 0
        self.peers: set[Peer] = set()
        self._write_buffers = WriteBuffers()
        self.strangers = Strangers()
        self.activity = Activity(self.strangers)
        self._fail = fail
        self._contained = broker.containment
        self._contained.report = _report
        self._deadline = deadline
        self._flow_log = FlowLog(broker)
        self._loop = asyncio.get_running_loop()
        self._scheduled = False
        # How many pieces of this turn brought the store something urgent, and how much there is.
        self._bringers = self._urgent = 0
        self.is_closed = False
        self._beaten_at = self.steady
        self._waited_for = 0
        self._gathering_until = 0.0
        self._memory = broker.memory
        self._pacing = Pacing(store, broker, self.wake)
        # What a flush left behind, trace records above all, is nothing new to note the time of.
        self._left_waiting = 0
        self._throttled: list[Peer] = []
        self._alarm: asyncio.TimerHandle | None = None
        self._alarm_due = NEVER
        self._heartbeat = self._loop.call_later(HEARTBEAT_SECONDS, self._beat)
        self._recording: asyncio.TimerHandle | None = None
        descriptor = store.fileno()
        if descriptor is not None:
            self._loop.add_reader(descriptor, self._written)

    # What sockets ask for

    @property
    def now(self) -> int:
        """The time of people, as of the last `stamp` (ms since the epoch)."""
        return self.broker.now

    def stamp(self) -> int:
        """Read the clock, tell the core, and return `steady`: ms that only pass."""
        passed = time.clock_gettime_ns(_SINCE_BOOT) // 1_000_000
        self.steady = steady = self._steady_at_boot + passed
        self.broker.set_clock(steady + self._wall_ahead, steady)
        return steady

    def arrived(self) -> int:
        """Return `stamp` for a piece that came; a few of them, and their turn, share one."""
        if self._fresh:
            self._fresh -= 1
            return self.steady
        self._fresh = FRESH_USES
        return self.stamp()

    def _look_at_wall(self) -> int:
        """See whether the clock of people was set; returns `stamp`."""
        steady = self.stamp()
        self._wall_ahead = self._wall() - steady
        return self.stamp()

    def wake(self) -> None:
        """Have a turn at the end of this round of the event loop."""
        if not self._scheduled and not self.is_closed:
            self._scheduled = True
            self._loop.call_soon(self._turn)

    def received(self, peer: Peer, size: int) -> None:
        """Count what came from a peer, and have a turn at the end of this round."""
        pacing = self._pacing
        pacing.unwritten += size
        if size >= SHARE_BYTES or pacing.is_strict or self._memory.partial > PARTIAL_BYTES_MAX:
            pacing.received(peer, size)
        urgent = self.store.urgent()
        if urgent > self._urgent:
            self._urgent = urgent
            self._bringers += 1
        if not self._scheduled and not self.is_closed:
            self._scheduled = True
            self._loop.call_soon(self._turn)

    def joined(self, peer: Peer) -> None:
        """Note a new peer, and tell it how much it may `buffer`."""
        self.peers.add(peer)
        self.activity.join(peer)
        self._write_buffers.join(peer)

    def left(self, peer: Peer) -> None:
        """Forget a peer."""
        self.peers.discard(peer)
        self.activity.leave(peer)
        self._write_buffers.leave(peer)
        self._pacing.forget(peer)
        self.strangers.gone(peer)

    def ending(self, peer: Peer) -> None:
        """See to it that the peer ends its socket, too."""
        self.activity.hasten(peer)

    def failed(self, peer: Peer, error: Exception) -> None:
        """Part with a peer; what the store says concerns everybody."""
        self._part_with(peer, peer.address, error)

    def _part_with(self, sender: Sender, address: str, error: Exception) -> None:
        if isinstance(error, StoreError):
            self._stop_on(error)
            return
        self._contained.note_error("connection", address, error)
        sender.abort()

    def throttled(self, peer: Peer) -> None:
        """Look at the peer again after each turn, until it may be read from."""
        self._throttled.append(peer)

    def skip(self, milliseconds: int) -> None:
        """Have so much time pass at once, for tests of what takes hours; nobody was silent.

        Who passed the clock *wall* has moved that one before.
        """
        self._steady_at_boot += milliseconds
        self._beaten_at += milliseconds
        for peer in self.peers:
            peer.received_at += milliseconds
            peer.sent_at += milliseconds
        self._fresh = 0
        self._look_at_wall()
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm, self._alarm_due = None, NEVER
        self.wake()

    # Turns

    def _turn(self) -> None:
        self._scheduled = False
        if self.is_closed:
            return
        broker, pacing = self.broker, self._pacing
        try:
            steady = self.steady if self._fresh else self.stamp()
            if steady - self._beaten_at > LATE_BEAT_MS:
                steady = self._look_up_after_sleep()
            try:
                broker.tick(broker.now, steady)
            except Exception as error:
                # Whatever it was, what there is to write is written.
                self._contained.note_error("backlog", "tick", error)
            if self._deadline is not None:
                self._deadline.check()
            self._write()
            self._commit()
            if pacing.unwritten > UNWRITTEN_BYTES_MAX or pacing.resting:
                pacing.end_turn()
        except StoreError as failure:
            self._stop_on(failure)
        if self._throttled:
            self._look_at_throttled()
        # Protocols without acknowledgements end messages as they send them: there may be room now.
        if broker.has_work():
            self.wake()
        if broker.is_due_before(self._alarm_due):
            self._set_alarm()
        self._fresh = 0

    def _write(self) -> None:
        """Send every connection what it is due, once."""
        while connections := self.broker.take_dirty():
            for connection in connections:
                sender = connection.sender
                if sender is not None:
                    try:
                        sender.flush()
                    except Exception as error:
                        self._part_with(sender, connection.address, error)

    def _commit(self) -> None:
        """Begin the store's write, unless more has just arrived; that is waited for once or so."""
        urgent = self.store.urgent()
        bringers, self._bringers = self._bringers, 0
        is_busy = bringers > 1 or self._waited_for > 0
        if is_busy and urgent > self._waited_for and self._may_gather():
            # Several peers are at work. One more look at the sockets first: what they bring
            # shares the same sync.
            self._waited_for = urgent
            self.wake()
            return
        self._waited_for = 0
        if self.store.waiting() > self._left_waiting:
            try:
                self.recorder.before_write(self.broker.now)
            except Exception as error:
                self._contained.note_error("telling", "flight recorder", error)
        receipts = self.store.flush()
        self._left_waiting, self._urgent = self.store.waiting(), self.store.urgent()
        if receipts:
            self.broker.settle(receipts)
            self.wake()

    def _may_gather(self) -> bool:
        """Tell whether what waits may wait a moment longer for what arrives."""
        now = time.monotonic()
        if not self._waited_for:
            self._gathering_until = now + GATHERING_SECONDS
        return now < self._gathering_until

    def _written(self) -> None:
        """Go on with what the disk has finished."""
        try:
            self._fresh = 0
            if self.arrived() - self._beaten_at > LATE_BEAT_MS:
                self._look_up_after_sleep()
            receipts = self.store.completed()
            self._urgent = self.store.urgent()
            self.broker.settle(receipts)
        except StoreError as error:
            self._stop_on(error)
        self.wake()

    def _look_up_after_sleep(self) -> int:
        """Make sure that this is still the master before anything is written or answered.

        Returns `stamp`.
        """
        steady = self._look_at_wall()
        self._awake(steady)
        self.store.maintain(self.now)
        return steady

    def _awake(self, steady: int) -> None:
        """Note a beat; while there was none, it was not the peers who were silent."""
        late = steady - self._beaten_at - LATE_BEAT_MS
        self._beaten_at = steady
        if late > 0:
            for peer in self.peers:
                peer.received_at += late

    def _stop_on(self, error: StoreError) -> None:
        logger.critical("the store failed, so the broker stops: %s", error)
        self.close()
        self._fail(error)

    def _look_at_throttled(self) -> None:
        throttled, self._throttled = self._throttled, []
        for peer in throttled:
            with self._contained.at("connection", peer.session.connection.address):
                peer.throttle()
            if peer.session.connection.stalled:
                self._throttled.append(peer)

    def _set_alarm(self) -> None:
        """Have a turn when the core's next timer is due."""
        due = self.broker.next_deadline()
        if due is None or self._alarm_due <= due:
            return
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm_due = due
        self._alarm = self._loop.call_later(max(0, due - self.steady) / 1000, self._ring)

    def _ring(self) -> None:
        self._alarm, self._alarm_due = None, NEVER
        self.wake()

    # Heartbeat

    def _beat(self) -> None:
        """Do what is due from time to time: inactivity, the store's upkeep."""
        self._heartbeat = self._loop.call_later(HEARTBEAT_SECONDS, self._beat)
        steady = self._look_at_wall()
        self._awake(steady)
        try:
            if self._deadline is not None:
                self._deadline.check()
            self.store.maintain(self.now)
            with self._contained.at("telling", "log of waiting producers"):
                self._flow_log.log_waiting_sends(self.broker.now, steady)
            with self._contained.at("connection", "strangers"):
                self.strangers.abort_late_ones(steady)
            for peer in self.activity.due(steady):
                with self._contained.at("connection", peer.address):
                    self.activity.look_at(peer, steady)
            if self._recording is None:
                self._record()
        except StoreError as error:
            self._stop_on(error)
        self.wake()

    def _record(self) -> None:
        """Let the recorder note statistics, of very many destinations a part at a time."""
        self._recording = None
        with self._contained.at("telling", "flight recorder"):
            if self.recorder.write_due_statistics(self.broker.now):
                self._recording = self._loop.call_later(RECORDING_SECONDS, self._go_on_recording)

    def _go_on_recording(self) -> None:
        self.stamp()
        try:
            self._record()
        except StoreError as error:
            self._stop_on(error)
        self.wake()

    def close(self) -> None:
        """Stop turning; sockets are aborted, the store is left to its owner."""
        self.is_closed = True
        self._heartbeat.cancel()
        if self._recording is not None:
            self._recording.cancel()
        if self._alarm is not None:
            self._alarm.cancel()
        descriptor = self.store.fileno()
        if descriptor is not None:
            self._loop.remove_reader(descriptor)
        for peer in list(self.peers):
            peer.abort()


def _clock() -> int:
    return time.time_ns() // 1_000_000


def _report(record: Contained, error: Exception) -> None:
    """Log an error that was contained; only the first of its kind at its place comes here."""
    logger.error("contained: %s %s: %s", record.kind, record.what, record.error, exc_info=error)
