"""One socket: bytes to its session, the session's bytes to it."""

import asyncio
from typing import cast

from lockkeeper.protocols.registry import Session
from lockkeeper.transport.driver import Driver

# The kernel's buffer and this much more may wait for a slow peer before dispatch to it stops.
WRITE_BUFFER_BYTES = 1 << 20


class Peer(asyncio.Protocol):
    """A connected socket with its session.

    `received_at` and `sent_at` are in ms since the epoch, for the inactivity check.
    """

    def __init__(self, driver: Driver, session: Session, now: int) -> None:
        self.session = session
        self.received_at = now
        self.sent_at = now
        self._driver = driver
        self._transport: asyncio.Transport | None = None
        self._paused = False
        session.connection.tag = self

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Greet the peer."""
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(high=WRITE_BUFFER_BYTES)
        self._driver.joined(self)
        self.session.start()
        self.flush()

    def data_received(self, data: bytes) -> None:
        """Pass bytes on; what they cause is sent at the end of the turn."""
        self.received_at = self._driver.stamp()
        self.session.receive_data(data)
        self._driver.wake()
        if self.session.closing:
            self.session.connection.dirty.append(self.session.connection)
        elif self.session.connection.stalled_bytes:
            self.throttle()

    def flush(self) -> None:
        """Send what the session has to say, in one write."""
        transport = self._transport
        pieces = self.session.data_to_send()
        if transport is None:
            return
        if pieces:
            self.sent_at = self._driver.now
            transport.write(b"".join(pieces))
        if self.session.closing and self.session.connection.congested:
            # A peer that takes nothing would never let a proper end through.
            transport.abort()
        elif self.session.closing:
            transport.close()

    def throttle(self) -> None:
        """Read from the peer only while the broker has memory for what it sends."""
        stalled = self.session.connection.stalled
        if self._transport is None or stalled == self._paused:
            return
        self._paused = stalled
        if stalled:
            self._transport.pause_reading()
            self._driver.throttled(self)
        else:
            self._transport.resume_reading()

    def pause_writing(self) -> None:
        """Stop dispatch to a peer that does not keep up."""
        self.session.connection.congested = True

    def resume_writing(self) -> None:
        """Go on with dispatch."""
        self.session.connection.congested = False
        for consumer in self.session.connection.consumers.values():
            for backlog in consumer.backlogs:
                backlog.activate()
        self._driver.wake()

    def connection_lost(self, exc: Exception | None) -> None:
        """Give back what the peer held."""
        self._transport = None
        self.session.connection_lost()
        self._driver.left(self)
        self._driver.wake()

    def close(self) -> None:
        """End the connection after what there is to send."""
        self.session.closing = True
        self.flush()

    def abort(self) -> None:
        """End the connection at once."""
        if self._transport is not None:
            self._transport.abort()
