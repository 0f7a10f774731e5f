"""taskiq's broker over the asyncio client: a queue of tasks, acknowledged after the work."""

from collections.abc import AsyncGenerator
from typing import Any

from taskiq import AckableMessage, AsyncBroker, BrokerMessage

from lockkeeper.client import DEFAULT_URL, Acknowledge
from lockkeeper.client.aio import Connection, Producer, connect

TASK_ID, TASK_NAME = "taskiq_task_id", "taskiq_task_name"
DELAY_PROPERTY = "AMQ_SCHEDULED_DELAY"
"""ActiveMQ's property: the broker delivers the message so many ms later."""
PREFETCH = 10


class LockkeeperBroker(AsyncBroker):  # type: ignore[misc]
    """Sends tasks to one queue, and hands them to this process's worker.

    The label `priority` (0 to 9) is JMSPriority, the label `delay` (seconds) is held by the
    broker's scheduler. A task is on the broker's disk when `kiq` returns.
    """

    def __init__(
        self,
        url: str = DEFAULT_URL,
        queue: str = "taskiq",
        prefetch: int = PREFETCH,
        **options: Any,
    ) -> None:
        """*url* is the client's; a worker has *prefetch* tasks in hand; *options* are taskiq's."""
        super().__init__(**options)
        self._url = url
        self._queue = queue
        self._prefetch = prefetch
        self._connection: Connection | None = None
        self._producer: Producer | None = None

    async def startup(self) -> None:
        """Connect. Raises ConnectionFailedError."""
        await super().startup()
        if self._connection is None:
            self._connection = await connect(self._url)
            self._producer = await self._connection.session().producer(self._queue)

    async def shutdown(self) -> None:
        """Close the connection; tasks in hand come again, to another worker."""
        await super().shutdown()
        connection, self._connection, self._producer = self._connection, None, None
        if connection is not None:
            await connection.close()

    async def kick(self, message: BrokerMessage) -> None:
        """Send a task. Raises MessagingError, and ValueError for a priority that is none."""
        _, producer = self._connected
        labels = message.labels
        properties: dict[str, str | int] = {
            TASK_ID: message.task_id,
            TASK_NAME: message.task_name,
        }
        if "delay" in labels:
            properties[DELAY_PROPERTY] = round(float(labels["delay"]) * 1000)
        priority = int(labels["priority"]) if "priority" in labels else None
        await producer.send(
            message.message,
            properties,
            priority=priority,
            correlation_id=message.task_id,
            type=message.task_name,
        )

    async def listen(self) -> AsyncGenerator[AckableMessage, None]:
        """Yield tasks as they come; taskiq acknowledges each as its `--ack-type` says."""
        connection, _ = self._connected
        session = connection.session(acknowledge=Acknowledge.INDIVIDUAL)
        consumer = await session.consumer(self._queue, prefetch=self._prefetch)
        try:
            async for message in consumer:
                if isinstance(message.body, bytes):
                    yield AckableMessage(data=message.body, ack=message.acknowledge)
                else:
                    message.reject("not a task of taskiq's: its body is not bytes")
        finally:
            # What was sent ahead is for other workers now.
            await consumer.close()

    @property
    def _connected(self) -> tuple[Connection, Producer]:
        if self._connection is None or self._producer is None:
            raise RuntimeError("the broker is not connected: await its startup() first")
        return self._connection, self._producer
