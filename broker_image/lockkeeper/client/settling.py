"""Settling: what a received message does when the application acknowledges or rejects it."""

from lockkeeper.client.core.consumer import ConsumerCore
from lockkeeper.client.core.delivery import Delivery
from lockkeeper.client.core.session import SessionCore
from lockkeeper.client.links.runner import Runner


class Settling:
    """The consumer of a message, as the message knows it; nothing here waits."""

    def __init__(self, runner: Runner, session: SessionCore, consumer: ConsumerCore) -> None:
        self._runner = runner
        self._session = session
        self._consumer = consumer

    def acknowledge(self, delivery: Delivery) -> None:
        """Acknowledge as the mode says."""
        with self._runner.lock:
            self._session.acknowledge_message(self._consumer, delivery)
            self._runner.flush(False)

    def reject(self, delivery: Delivery, cause: str | BaseException) -> None:
        """Send a delivery to the dead letter queue."""
        with self._runner.lock:
            self._consumer.reject(delivery, cause)
            self._runner.flush(False)
