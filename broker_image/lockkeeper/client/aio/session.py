"""Sessions for asyncio: where producers and consumers are made, and transactions ended."""

import asyncio
from collections.abc import AsyncIterator, Callable

from lockkeeper.client.aio.closing import Closing
from lockkeeper.client.aio.consumer import Consumer
from lockkeeper.client.aio.driving import drive
from lockkeeper.client.aio.listening import Line, Listener, Listening
from lockkeeper.client.aio.producer import Producer
from lockkeeper.client.aio.two_phase import TwoPhase
from lockkeeper.client.aio.within import begin_outside, is_within
from lockkeeper.client.blobs import BLOB_SECONDS_MAX, MIME_TYPE, Blob, Source, upload
from lockkeeper.client.core.acknowledge import Acknowledge
from lockkeeper.client.core.branches import Branches
from lockkeeper.client.core.connection import ConnectionCore
from lockkeeper.client.core.consumer import ConsumerCore
from lockkeeper.client.core.redelivery import RedeliveryPolicy, RedeliveryPolicyMap
from lockkeeper.client.core.session import SessionCore
from lockkeeper.client.core.subscribing import browser_info, consumer_info
from lockkeeper.client.core.waiting import Procedure
from lockkeeper.client.drafting import PRIORITY_DEFAULT, check_priority
from lockkeeper.client.links.clock import moment
from lockkeeper.client.links.runner import Runner
from lockkeeper.client.messages import DestinationName, ReceivedMessage, destination_of
from lockkeeper.client.opening import policies
from lockkeeper.client.settling import Settling
from lockkeeper.message.destination import Destination
from lockkeeper.message.openwire import ProducerInfo


class Session(TwoPhase, Closing):
    """One line of work, for one task at a time; made by `Connection.session`."""

    def __init__(
        self,
        runner: Runner,
        connection: ConnectionCore,
        core: SessionCore,
        redelivery: RedeliveryPolicyMap,
        forget: "Callable[[Session], None]",
    ) -> None:
        self.core = core
        self.branches = Branches(connection, core)
        self.runner = runner
        self._connection = connection
        self._redelivery = redelivery
        self._forget = forget
        self._consumers: list[Consumer] = []
        self._line: Line | None = None

    @property
    def mode(self) -> Acknowledge:
        """The acknowledge mode."""
        return self.core.mode

    @property
    def is_transacted(self) -> bool:
        """Tell whether sending and receiving happen at commit."""
        return self.core.is_transacted

    # Making things

    async def producer(
        self,
        destination: DestinationName | None = None,
        *,
        persistent: bool = True,
        priority: int = PRIORITY_DEFAULT,
        time_to_live: float | None = None,
        window_size: int | None = None,
        timeout: float | None = None,
    ) -> Producer:
        """Return a producer for *destination*, or for one named with each message.

        With a *window_size* it sends so many bytes ahead of the broker's taking them, where that
        is not confirmed anyway.
        """
        settings, info = self.producer_settings(
            destination, persistent, priority, time_to_live, window_size
        )
        core = await drive(self.runner, self.core.open_producer(info, moment()), timeout)
        return Producer(self.runner, core, self.core.close_producer, *settings)

    def producer_settings(
        self,
        destination: DestinationName | None,
        persistent: bool,
        priority: int,
        time_to_live: float | None,
        window_size: int | None,
    ) -> tuple[tuple[Destination | None, bool, int, float | None, bool], ProducerInfo]:
        """Return the settings of a producer, and what the broker is told of it."""
        target = None if destination is None else destination_of(destination)
        check_priority(priority)
        options = self._connection.options
        window = options.producer_window_size if window_size is None else window_size
        info = ProducerInfo(destination=target, window_size=window)
        return (target, persistent, priority, time_to_live, options.use_compression), info

    async def consumer(
        self,
        destination: DestinationName,
        selector: str | None = None,
        *,
        prefetch: int | None = None,
        subscription_name: str | None = None,
        no_local: bool = False,
        exclusive: bool = False,
        priority: int = 0,
        retroactive: bool = False,
        redelivery: RedeliveryPolicy | RedeliveryPolicyMap | None = None,
        listener: Listener | None = None,
        timeout: float | None = None,
    ) -> Consumer:
        """Return a consumer; with a *subscription_name* a durable subscriber of a topic.

        *prefetch* is how many messages the broker may send ahead; with 0 it sends one for each
        call of `receive`. Raises InvalidSelectorError and other refusals.
        """
        self.core.check_open()
        info = consumer_info(
            self._connection.options, self._connection.client_id, self.mode is Acknowledge.AUTO,
            destination, selector, prefetch, subscription_name, no_local, exclusive, priority,
            retroactive,
        )  # fmt: skip
        chosen = self._redelivery if redelivery is None else policies(redelivery)
        core = await drive(self.runner, self.core.open_consumer(info, chosen, moment()), timeout)
        consumer = Consumer(self.runner, core, self.core, self)
        self._consumers.append(consumer)
        if listener is not None:
            await consumer.listen(listener)
        return consumer

    async def browse(
        self, destination: DestinationName, selector: str | None = None
    ) -> AsyncIterator[ReceivedMessage]:
        """Yield the messages of a queue in its order, without consuming them.

        Raises IllegalStateError when the connection is lost meanwhile.
        """
        core = await drive(self.runner, self.open_browser(destination, selector))
        settling = Settling(self.runner, self.core, core)
        try:
            while delivery := await drive(self.runner, core.receive(None, moment())):
                yield ReceivedMessage(delivery, settling)
        finally:
            with self.runner.lock:
                self.core.close_consumer(core)
                self.runner.flush(False)

    def open_browser(
        self, destination: DestinationName, selector: str | None
    ) -> Procedure[ConsumerCore]:
        """Return the procedure that makes a browser."""
        info = browser_info(self._connection.options, destination, selector)
        return self.core.open_consumer(info, self._redelivery, moment(), Acknowledge.AUTO)

    async def unsubscribe(self, subscription_name: str, *, timeout: float | None = None) -> None:
        """Delete a durable subscription. Raises InvalidDestinationError when there is none."""
        unsubscribing = self._connection.unsubscribe(subscription_name, moment())
        await drive(self.runner, unsubscribing, timeout)

    @property
    def blob_upload_url(self) -> str:
        """URL below which files are put that become blobs.

        The first that is set: `jms.blobTransferPolicy.uploadUrl`, what the broker says of itself
        (`brokerUploadUrl`), `jms.blobTransferPolicy.defaultUploadUrl`.
        """
        return self._connection.blob_transfer.url

    async def upload(
        self, source: Source, *, mime_type: str = MIME_TYPE, timeout: float = BLOB_SECONDS_MAX
    ) -> Blob:
        """Put a file below `blob_upload_url`, and return the blob to be sent.

        A server there takes HTTP's PUT; a `file:` URL names a directory, which is made. *timeout*
        is for each answer, in seconds. Raises BlobError when the file is not taken, OSError when it
        cannot be read.
        """
        arguments = (source, self.blob_upload_url, mime_type, timeout)
        return await asyncio.to_thread(upload, *arguments)

    # Settling

    def acknowledge(self) -> None:
        """In CLIENT mode, acknowledge everything the session has consumed so far; never waits."""
        with self.runner.lock:
            self.core.acknowledge()
            self.runner.flush(False)

    def reject(self, message: ReceivedMessage, cause: str | BaseException) -> None:
        """Send a consumed message to the dead letter queue, with *cause* as its reason.

        This is at once and for good: it is not part of a transaction.
        """
        message.reject(cause)

    async def commit(self, *, timeout: float | None = None) -> None:
        """Make everything sent and consumed since the last commit happen.

        Raises TransactionRolledBackError when it has not happened: consumed messages come
        again, sent ones must be sent again. Its kind TransactionInDoubtError says that it may
        have happened, because the connection broke at this moment; so says RequestTimedOutError
        after *timeout* seconds.
        """
        await drive(self.runner, self.core.commit(moment()), timeout)

    async def rollback(
        self, cause: str | BaseException | None = None, *, timeout: float | None = None
    ) -> None:
        """Undo what was sent; consumed messages come again, the first of them first.

        One that came too often (RedeliveryPolicy) goes to the dead letter queue with *cause*.
        """
        await drive(self.runner, self.core.rollback(cause, moment()), timeout)

    async def discard_sent(self, *, timeout: float | None = None) -> None:
        """Undo what was sent since the last commit; what was consumed stays in hand."""
        await drive(self.runner, self.core.discard_sent(moment()), timeout)

    def recover(self, cause: str | BaseException | None = None) -> None:
        """In CLIENT and INDIVIDUAL mode, let everything not acknowledged come again.

        One that came too often (RedeliveryPolicy) goes to the dead letter queue with *cause*.
        """
        with self.runner.lock:
            self.core.recover(moment(), cause)
            self.runner.flush(False)

    # Listening

    def listen(self, consumer: Consumer, listener: Listener) -> Listening:
        """Begin to call a listener; see `Consumer.listen`."""
        self.core.listen()
        if self._line is None:
            self._line = Line()
        return Listening(
            self.runner, consumer.core, consumer.settling, listener, self._line,
            self.core.listener_ended,
        )  # fmt: skip

    def consumer_closed(self, consumer: Consumer) -> None:
        """Forget a consumer."""
        if consumer in self._consumers:
            self._consumers.remove(consumer)

    @property
    def is_listening(self) -> bool:
        """Tell whether a listener is at work."""
        return any(consumer.is_listening for consumer in self._consumers)

    def end_listeners(self) -> None:
        """Let the listeners take no further message; for any thread."""
        for consumer in [*self._consumers]:
            consumer.end_listener()

    async def stop_listening(self) -> None:
        """End all listeners, after the message that one of them has in hand."""
        for consumer in [*self._consumers]:
            await consumer.stop_listening()
        if self._line is not None:
            self._line.end()
            self._line = None

    # Closing

    async def close(self) -> None:
        """Roll an open transaction back and end all producers and consumers.

        In a listener of the connection it returns at once: listeners of the session get no further
        message, and it is closed once the one at work has returned.
        """
        if self.is_listening and is_within(self.runner):
            self.close_soon()
            return
        await self.stop_listening()
        self.close_at_once()

    def close_soon(self) -> None:
        """Let listeners take no further message, and close once the one at work has returned."""
        self.end_listeners()
        begin_outside(self.close())

    def close_at_once(self) -> None:
        """Close a session without listeners; for any thread."""
        with self.runner.lock:
            if self.core.is_closed:
                return
            self.core.close()
            self.runner.flush(False)
        self._consumers.clear()
        self._forget(self)
