"""Options of a connection: what it asks of brokers and how its consumers behave.

The defaults are those of ActiveMQ's client; times are in seconds.
"""

from dataclasses import dataclass

from lockkeeper.message.destination import Destination


@dataclass(frozen=True, slots=True)
class PrefetchPolicy:
    """Number of messages that a broker may send ahead, by the kind of consumer."""

    queue: int = 1000
    topic: int = 32766
    durable_topic: int = 100
    queue_browser: int = 500
    optimized_durable_topic: int = 1000

    def of_consumer(self, destination: Destination, is_durable: bool, is_optimized: bool) -> int:
        """Return the prefetch of a consumer that says nothing of it."""
        if not destination.is_topic:
            return self.queue
        if not is_durable:
            return self.topic
        return self.optimized_durable_topic if is_optimized else self.durable_topic


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Limits of calls to a connected broker, in seconds; None means no limit.

    `send` is for messages, which flow control may hold up for as long as it takes (ActiveMQ's
    default, too); `request` for everything else. `close` is for all of `Connection.close`.
    `no_broker` is how long calls wait for a broker, where there may be another one.
    """

    send: float | None = None
    request: float | None = 300.0
    close: float = 15.0
    no_broker: float | None = None


@dataclass(frozen=True, slots=True)
class BlobTransferPolicy:
    """URLs below which files are put that blob messages name; the first that is set is taken.

    The broker's own takes the place of `broker_upload_url` once it has told it (BrokerInfo,
    openwire.md section 4).
    """

    upload_url: str | None = None
    broker_upload_url: str | None = None
    default_upload_url: str = "http://localhost:8080/uploads/"

    @property
    def url(self) -> str:
        """URL below which files are put."""
        return self.upload_url or self.broker_upload_url or self.default_upload_url


@dataclass(frozen=True, slots=True)
class ConnectionOptions:
    """Options for everything that a connection makes."""

    prefetch: PrefetchPolicy = PrefetchPolicy()
    timeouts: Timeouts = Timeouts()
    blob_transfer: BlobTransferPolicy = BlobTransferPolicy()
    optimize_acknowledge: bool = False
    optimize_acknowledge_timeout: float = 0.3
    check_for_duplicates: bool = True
    message_priority_supported: bool = False
    always_sync_send: bool = False
    use_async_send: bool = False
    use_compression: bool = False
    exclusive_consumer: bool = False
    dispatch_async: bool = True
    producer_window_size: int = 0
