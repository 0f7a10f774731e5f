"""The trigger: one event for each message, acknowledged when Airflow has stored the event."""

import asyncio
from collections.abc import AsyncIterator, Hashable, Sequence
from typing import Any, NamedTuple

from airflow.triggers.base import BaseEventTrigger, TriggerEvent
from airflow.triggers.shared_stream import AdvanceItem, SharedStreamProducer

from lockkeeper.client import Acknowledge, ReceivedMessage
from lockkeeper.client.aio import Connection, connect
from lockkeeper.integrations.airflow.hook import LockkeeperHook
from lockkeeper.integrations.airflow.payload import payload_of
from lockkeeper.message.errors import MalformedMessageError

OUTSTANDING_MAX = 100
"""Messages in hand whose events are not stored yet; Airflow fails a trigger with over 1024."""


class Source(NamedTuple):
    """A queue, where it is, and which of its messages; see `LockkeeperMessageTrigger`."""

    destination: str
    url: str | None = None
    conn_id: str | None = None
    selector: str | None = None

    async def connect(self) -> Connection:
        """Return an open connection. Raises MessagingError."""
        if self.conn_id is not None:
            return await LockkeeperHook(self.conn_id, self.url).connect()
        assert self.url is not None
        return await connect(self.url)


class LockkeeperMessageTrigger(BaseEventTrigger):  # type: ignore[misc]
    """Watches one queue for assets.

    Airflow tells a shared stream when an event is in its database: only then the message is
    acknowledged. What was in hand when a triggerer died comes again.
    """

    def __init__(
        self,
        destination: str,
        url: str | None = None,
        conn_id: str | None = None,
        selector: str | None = None,
    ) -> None:
        """*url* is the client's, `failover:(…)` too; *conn_id* names an Airflow connection.

        Raises ValueError if neither is given.
        """
        super().__init__()
        if url is None and conn_id is None:
            raise ValueError("say where the broker is: url or conn_id")
        self._source = Source(destination, url, conn_id, selector)

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return the class and its arguments, which Airflow keeps."""
        return f"{type(self).__module__}.{type(self).__qualname__}", self._source._asdict()

    def shared_stream_key(self) -> Hashable:
        """Return what has a consumer of its own: equal triggers share one."""
        return (type(self).__qualname__, *self._source)

    @classmethod
    def create_shared_stream_producer(cls, kwargs: dict[str, Any]) -> "MessageStream":
        """Return the consumer's side of a stream."""
        return MessageStream(Source(**kwargs))

    async def filter_shared_stream(
        self, shared_stream: AsyncIterator[dict[str, Any]]
    ) -> AsyncIterator[TriggerEvent]:
        """Yield an event for each message."""
        async for payload in shared_stream:
            yield TriggerEvent(payload)

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Yield events outside of shared streams.

        Each is acknowledged when the next one is asked for: nobody tells that it was stored.
        """
        stream = MessageStream(self._source)
        try:
            async for payload, message in stream.open_stream():
                yield TriggerEvent(payload)
                stream.settle(message)
        finally:
            await stream.aclose()


class MessageStream(SharedStreamProducer):  # type: ignore[misc]
    """A consumer of one queue, whose messages Airflow acknowledges one by one."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._connection: Connection | None = None
        self._room = asyncio.Semaphore(OUTSTANDING_MAX)

    async def open_stream(self) -> AsyncIterator[tuple[dict[str, Any], ReceivedMessage]]:
        """Yield payloads and their messages for ever. Raises MessagingError.

        A message that cannot be read is a dead letter with its cause.
        """
        self._connection = await self._source.connect()
        session = self._connection.session(acknowledge=Acknowledge.INDIVIDUAL)
        consumer = await session.consumer(
            self._source.destination, self._source.selector, prefetch=OUTSTANDING_MAX
        )
        async for message in consumer:
            try:
                payload = payload_of(message)
            except MalformedMessageError as error:
                message.reject(error)
                continue
            await self._room.acquire()
            yield payload, message

    async def advance(self, batch: Sequence[AdvanceItem]) -> None:
        """Acknowledge messages whose events are stored.

        Raises RuntimeError for one whose event is not: Airflow ends the stream then, and the
        broker delivers again what was in hand.
        """
        for message, outcome in batch:
            if not outcome.is_clean:
                raise RuntimeError(f"the event of {message.message_id} was not stored: {outcome}")
            self.settle(message)

    def get_advance_lane(self, broker_payload: ReceivedMessage) -> Hashable:
        """Return a lane for each message: none waits for the event of another one."""
        return broker_payload.message_id

    def settle(self, message: ReceivedMessage) -> None:
        """Acknowledge a message, which makes room for another one."""
        message.acknowledge()
        self._room.release()

    async def aclose(self) -> None:
        """Give back what is in hand."""
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()
