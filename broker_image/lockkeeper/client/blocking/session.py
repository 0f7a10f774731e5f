"""Sessions: where producers and consumers are made, and transactions ended."""

from collections.abc import Iterator

from lockkeeper.client import aio
from lockkeeper.client.aio.listening import Listener
from lockkeeper.client.blobs import BLOB_SECONDS_MAX, MIME_TYPE, Blob, Source, upload
from lockkeeper.client.blocking.closing import Closing
from lockkeeper.client.blocking.consumer import Consumer
from lockkeeper.client.blocking.driving import drive
from lockkeeper.client.blocking.loop import Caller
from lockkeeper.client.blocking.producer import Producer
from lockkeeper.client.blocking.two_phase import TwoPhase
from lockkeeper.client.core.acknowledge import Acknowledge
from lockkeeper.client.core.redelivery import RedeliveryPolicy, RedeliveryPolicyMap
from lockkeeper.client.drafting import PRIORITY_DEFAULT
from lockkeeper.client.links.clock import moment
from lockkeeper.client.links.runner import Runner
from lockkeeper.client.messages import DestinationName, ReceivedMessage
from lockkeeper.client.settling import Settling


class Session(TwoPhase, Closing):
    """One line of work, for one thread at a time; made by `Connection.session`."""

    def __init__(self, thread: Caller, runner: Runner, session: aio.Session) -> None:
        self.core = session.core
        self.branches = session.branches
        self._thread = thread
        self._runner = runner
        self._aio = session

    @property
    def mode(self) -> Acknowledge:
        """The acknowledge mode."""
        return self.core.mode

    @property
    def is_transacted(self) -> bool:
        """Tell whether sending and receiving happen at commit."""
        return self.core.is_transacted

    # Making things

    def producer(
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
        settings, info = self._aio.producer_settings(
            destination, persistent, priority, time_to_live, window_size
        )
        core = drive(self._runner, self.core.open_producer(info, moment()), timeout)
        return Producer(self._runner, core, self.core.close_producer, *settings)

    def consumer(
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
        made = self._thread.call(
            self._aio.consumer(
                destination,
                selector,
                prefetch=prefetch,
                subscription_name=subscription_name,
                no_local=no_local,
                exclusive=exclusive,
                priority=priority,
                retroactive=retroactive,
                redelivery=redelivery,
                listener=listener,
                timeout=timeout,
            )
        )
        return Consumer(self._thread, self._runner, made, self.core)

    def browse(
        self, destination: DestinationName, selector: str | None = None
    ) -> Iterator[ReceivedMessage]:
        """Yield the messages of a queue in its order, without consuming them.

        Raises IllegalStateError when the connection is lost meanwhile.
        """
        core = drive(self._runner, self._aio.open_browser(destination, selector))
        settling = Settling(self._runner, self.core, core)
        try:
            while delivery := drive(self._runner, core.receive(None, moment())):
                yield ReceivedMessage(delivery, settling)
        finally:
            with self._runner.lock:
                self.core.close_consumer(core)
                self._runner.flush(False)

    def unsubscribe(self, subscription_name: str, *, timeout: float | None = None) -> None:
        """Delete a durable subscription. Raises InvalidDestinationError when there is none."""
        self._thread.call(self._aio.unsubscribe(subscription_name, timeout=timeout))

    @property
    def blob_upload_url(self) -> str:
        """URL below which files are put that become blobs; see `aio.Session.blob_upload_url`."""
        return self._aio.blob_upload_url

    def upload(
        self, source: Source, *, mime_type: str = MIME_TYPE, timeout: float = BLOB_SECONDS_MAX
    ) -> Blob:
        """Put a file below `blob_upload_url`, and return the blob to be sent.

        A server there takes HTTP's PUT; a `file:` URL names a directory, which is made. *timeout*
        is for each answer, in seconds. Raises BlobError when the file is not taken, OSError when it
        cannot be read.
        """
        return upload(source, self._aio.blob_upload_url, mime_type, timeout)

    # Settling

    def acknowledge(self) -> None:
        """In CLIENT mode, acknowledge everything the session has consumed so far."""
        self._aio.acknowledge()

    def reject(self, message: ReceivedMessage, cause: str | BaseException) -> None:
        """Send a consumed message to the dead letter queue, with *cause* as its reason.

        This is at once and for good: it is not part of a transaction.
        """
        message.reject(cause)

    def commit(self, *, timeout: float | None = None) -> None:
        """Make everything sent and consumed since the last commit happen.

        Raises TransactionRolledBackError when it has not happened: consumed messages come
        again, sent ones must be sent again. Its kind TransactionInDoubtError says that it may
        have happened, because the connection broke at this moment; so says RequestTimedOutError
        after *timeout* seconds.
        """
        drive(self._runner, self.core.commit(moment()), timeout)

    def rollback(
        self, cause: str | BaseException | None = None, *, timeout: float | None = None
    ) -> None:
        """Undo what was sent; consumed messages come again, the first of them first.

        One that came too often (RedeliveryPolicy) goes to the dead letter queue with *cause*.
        """
        drive(self._runner, self.core.rollback(cause, moment()), timeout)

    def discard_sent(self, *, timeout: float | None = None) -> None:
        """Undo what was sent since the last commit; what was consumed stays in hand."""
        drive(self._runner, self.core.discard_sent(moment()), timeout)

    def recover(self, cause: str | BaseException | None = None) -> None:
        """In CLIENT and INDIVIDUAL mode, let everything not acknowledged come again.

        One that came too often (RedeliveryPolicy) goes to the dead letter queue with *cause*.
        """
        self._aio.recover(cause)

    # Closing

    def close(self) -> None:
        """Roll an open transaction back and end all producers and consumers.

        In a listener of the connection it returns at once: listeners of the session get no further
        message, and it is closed once the one at work has returned.
        """
        if not self._aio.is_listening:
            self._aio.close_at_once()
        elif self._thread.is_own:
            self._aio.close_soon()
        else:
            self._thread.call(self._aio.close())
