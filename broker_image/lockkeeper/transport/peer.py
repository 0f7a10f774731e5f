"""One socket: bytes to its session, the session's bytes to it."""

import asyncio
from typing import Protocol, cast

from lockkeeper.protocols.session import Session
from lockkeeper.transport.kernel_buffer import kept_bytes

# So much of what came is carried out before everybody else has a turn.
PIECE_BYTES = 1 << 16
UNREAD_ANSWERS_BYTES_MAX = 1 << 20
"""What a peer that does not read may be answered, beyond its write buffer, before it is not read
from any more.
"""


class Guest(Protocol):
    """Somebody connected who may not have said who it is."""

    @property
    def address(self) -> str:
        """Address that the peer comes from."""

    @property
    def is_in(self) -> bool:
        """Tell whether it has said who it is, if it has to."""

    def abort(self) -> None:
        """End the connection at once."""


class Driver(Protocol):
    """Drives the core; implemented by the server."""

    steady: int

    def arrived(self) -> int:
        """Tell the core what time it is now that a piece came, and return `steady`: ms that only
        pass.
        """

    def wake(self) -> None:
        """Have a turn at the end of this round of the event loop."""

    def received(self, peer: "Peer", size: int) -> None:
        """Count *size* bytes that came from a peer, and have a turn at the end of this round."""

    def joined(self, peer: "Peer") -> None:
        """Note a new peer, and tell it how much it may `buffer`."""

    def left(self, peer: "Peer") -> None:
        """Forget a peer."""

    def ending(self, peer: "Peer") -> None:
        """See to it that a peer that ended its connection in words ends its socket, too."""

    def failed(self, peer: "Peer", error: Exception) -> None:
        """Part with a peer whose bytes, or what they asked for, nobody could deal with."""

    def throttled(self, peer: "Peer") -> None:
        """Call the peer's `throttle` again when there may be memory."""


class Peer(asyncio.Protocol):
    """A connected socket with its session.

    `received_at` and `sent_at` are in ms of `Driver.steady`, for the inactivity check. `taken` is
    what it has brought in the driver's `round`, in bytes; while it `is_resting` it brings nothing.
    """

    def __init__(self, driver: Driver, session: Session, steady: int) -> None:
        self.session = session
        self.received_at = steady
        self.sent_at = steady
        self._driver = driver
        self._transport: asyncio.Transport | None = None
        self.round = self.taken = 0
        self.is_resting = False
        self._is_throttled = False
        self._unread_answers = 0
        self._answers_taken: int | None = None
        self.is_paused = False
        session.connection.sender = self

    @property
    def address(self) -> str:
        """Address that the peer comes from."""
        return self.session.connection.address

    @property
    def is_in(self) -> bool:
        """Tell whether the peer has said who it is, if it has to."""
        return self.session.is_open

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Greet the peer."""
        self._transport = cast("asyncio.Transport", transport)
        self._driver.joined(self)
        self.session.start()
        self.flush()

    def buffer(self, size: int) -> None:
        """Let *size* bytes wait to be sent before dispatch stops, and be dispatched at once."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.set_write_buffer_limits(high=size)
        self.session.connection.burst_bytes = max(PIECE_BYTES, size)

    def data_received(self, data: bytes) -> None:
        """Pass bytes on; what they cause is sent at the end of the turn."""
        self.received_at = self._driver.arrived()
        session = self.session
        try:
            session.receive_data(data, PIECE_BYTES)
        except Exception as error:
            self._driver.failed(self, error)
        # Where something is unread, the peer has brought its share, and rests.
        self._driver.received(self, PIECE_BYTES if session.unread else len(data))
        if session.closing or session.connection.stalled_bytes:
            self._look_at_session()

    def hand_over(self, session: Session) -> None:
        """Go on with another session of the same connection."""
        self.session = session

    def _look_at_session(self) -> None:
        if self.session.closing:
            self.session.connection.announce()
        elif self.session.connection.stalled_bytes:
            self.throttle()

    def flush(self) -> None:
        """Send what the session has to say, in one write."""
        transport = self._transport
        if transport is None:
            self.session.discard()
            return
        pieces = self.session.data_to_send()
        if pieces:
            self.sent_at = self._driver.steady
            if self.session.connection.congested:
                self._count_unread(sum(map(len, pieces)))
            if self.session.is_bulky:
                transport.writelines(pieces)
            else:
                transport.write(b"".join(pieces))
        if self.session.closing:
            self.ended()
            if self.session.connection.congested:
                # A peer that takes nothing would never let a proper end through.
                transport.abort()
            else:
                transport.close()

    def ended(self) -> None:
        """See `Sender.ended`."""
        self._driver.ending(self)

    def throttle(self) -> None:
        """Read from the peer only while the broker has memory for what it sends."""
        stalled = self.session.connection.stalled
        if stalled and not self._is_throttled:
            self._driver.throttled(self)
        self._is_throttled = stalled
        self._pause_or_read()

    def rest(self, is_resting: bool) -> None:
        """Read from the peer only while it is not resting."""
        self.is_resting = is_resting
        if is_resting:
            self._pause_or_read()
        else:
            self._go_on()

    def _count_unread(self, size: int) -> None:
        """Read from a client only while it reads its answers: messages wait elsewhere.

        Two brokers, who send each other messages, would wait for each other.
        """
        if self.session.connection.network is None:
            self._unread_answers += size
            self._pause_or_read()

    def _go_on(self) -> None:
        """Carry out what came before, and read, unless the peer is to wait."""
        if self.session.unread and not self.is_resting and not self._is_unheard():
            self._read_on()
        if self._transport is None and not self.session.unread:
            self._leave()
        self._pause_or_read()

    def _is_unheard(self) -> bool:
        """Tell whether the peer leaves too many answers unread."""
        return self._unread_answers > UNREAD_ANSWERS_BYTES_MAX

    def is_excused(self) -> bool:
        """Tell whether nothing comes from it because the broker does not read.

        That excuses nobody who leaves its answers unread and has taken nothing since the last time.
        The loop's buffer alone does not tell: the system refills its own in steps of a megabyte,
        for which a slow peer needs longer than it may be silent.
        """
        transport = self._transport
        if transport is None or not self._is_unheard():
            return self.is_paused
        waiting = transport.get_write_buffer_size() + kept_bytes(transport)
        taken = self._unread_answers - waiting
        before, self._answers_taken = self._answers_taken, taken
        # What is sent meanwhile grows when it is encrypted: that is nothing taken.
        return before is None or taken > before

    def _read_on(self) -> None:
        """Carry out more of what came before."""
        before = self.session.unread
        try:
            self.session.read_on(PIECE_BYTES)
        except Exception as error:
            self._driver.failed(self, error)
        self._driver.received(self, PIECE_BYTES if self.session.unread else before)
        self._look_at_session()

    def _pause_or_read(self) -> None:
        is_paused = self._is_throttled or self.is_resting or self._is_unheard()
        transport = self._transport
        if transport is None or is_paused == self.is_paused or transport.is_closing():
            return
        self.is_paused = is_paused
        if is_paused:
            transport.pause_reading()
        else:
            self.received_at = self._driver.steady
            transport.resume_reading()

    def pause_writing(self) -> None:
        """Stop dispatch to a peer that does not keep up."""
        self.session.connection.congested = True

    def resume_writing(self) -> None:
        """Go on with dispatch."""
        self.session.connection.congested = False
        self._answers_taken = None
        if self._unread_answers:
            self._unread_answers = 0
            self._go_on()
        for consumer in self.session.connection.consumers.values():
            for backlog in consumer.backlogs:
                backlog.activate()
        self._driver.wake()

    def connection_lost(self, exc: Exception | None) -> None:
        """Give back what the peer held, once everything is carried out that it had brought.

        That takes its turns as ever; it is sent no more messages, and answered nothing.
        """
        self._transport = None
        self._unread_answers = 0
        self.session.connection.congested = True
        self._go_on()

    def _leave(self) -> None:
        """Give back what the peer held."""
        self._driver.left(self)
        try:
            self.session.connection_lost()
        except Exception as error:
            self._driver.failed(self, error)
        self._driver.wake()

    def close(self) -> None:
        """End the connection after what there is to send."""
        self.session.closing = True
        self.flush()

    def abort(self) -> None:
        """End the connection at once."""
        if self._transport is not None:
            self._transport.abort()
