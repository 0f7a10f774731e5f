"""Producers of the blocking face."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime

from lockkeeper.client.blocking.closing import Closing
from lockkeeper.client.blocking.loop import Caller
from lockkeeper.client.errors import IllegalStateError
from lockkeeper.client.streams import aio
from lockkeeper.client.streams.aio.transaction import SEND_SECONDS
from lockkeeper.client.streams.aio.transaction import Transaction as AioTransaction
from lockkeeper.client.streams.core.messages import Message, Sent


class Producer(Closing):
    """Sends messages; made by `Connection.producer`. Any thread may use it.

    A send returns when its message is stored. What fails on the way is tried again, perhaps with
    the broker that has taken over: a message may then be there twice, with the same `unique_id`.
    """

    def __init__(self, thread: Caller, producer: aio.Producer) -> None:
        self._thread = thread
        self._aio = producer

    def send(
        self,
        stream: str,
        body: bytes | str,
        *,
        tag: str | None = None,
        keys: Sequence[str] = (),
        properties: Mapping[str, str] | None = None,
        partition: int | None = None,
        partition_key: str | None = None,
        delay_level: int = 0,
        deliver_at: datetime | None = None,
        timeout: float = SEND_SECONDS,
    ) -> Sent:
        """Send a message, and return where it is.

        It goes to the *partition* with this place in the order of the route, or to the one of a
        *partition_key*, the same for the same key as with RocketMQ's SelectMessageQueueByHash; else
        to the next in turn. Raises StreamRefusedError, ValueError for what no message may have, and
        after *timeout* seconds ConnectionFailedError or RequestTimedOutError: then, and when the
        call is interrupted, the message may have been stored.
        """
        message = Message(body, tag, keys, properties or {}, delay_level, deliver_at)
        return self.send_message(
            stream, message, partition=partition, partition_key=partition_key, timeout=timeout
        )

    def send_message(
        self,
        stream: str,
        message: Message,
        *,
        partition: int | None = None,
        partition_key: str | None = None,
        timeout: float = SEND_SECONDS,
    ) -> Sent:
        """Send a message that is made already; see `send`."""
        sending = self._aio.send_message(
            stream, message, partition=partition, partition_key=partition_key, timeout=timeout
        )
        return self._thread.call(sending)

    def send_batch(
        self,
        stream: str,
        messages: Sequence[Message],
        *,
        partition: int | None = None,
        partition_key: str | None = None,
        timeout: float = SEND_SECONDS,
    ) -> list[Sent]:
        """Send messages to one partition, in their order; return where each is.

        As many as fit into 1 MiB travel together, and are stored together or not at all. Raises as
        `send` does: then those of earlier requests are stored. None of them may be delayed.
        """
        sending = self._aio.send_batch(
            stream, messages, partition=partition, partition_key=partition_key, timeout=timeout
        )
        return self._thread.call(sending)

    def transaction(
        self,
        stream: str,
        message: Message,
        *,
        partition: int | None = None,
        partition_key: str | None = None,
        timeout: float = SEND_SECONDS,
    ) -> "Transaction":
        """Send a message that nobody sees before the transaction is committed.

        As a block, `with producer.transaction(…)`, it commits at the end, and rolls back when the
        block raises. Where the broker hears of no outcome it asks the group's *check* callback.
        Raises IllegalStateError without one, and as `send` does.
        """
        beginning = self._aio.transaction(
            stream, message, partition=partition, partition_key=partition_key, timeout=timeout
        )
        return Transaction(self._thread, self._thread.call(beginning))

    def close(self) -> None:
        """Send nothing any more."""
        with suppress(IllegalStateError):
            self._thread.call(self._aio.close())


class Transaction:
    """A message that nobody sees yet; `sent` tells where it is kept."""

    def __init__(self, thread: Caller, transaction: AioTransaction) -> None:
        self.sent = transaction.sent
        self._thread = thread
        self._aio = transaction

    def __enter__(self) -> "Transaction":
        return self

    def __exit__(self, *raised: object) -> None:
        self._thread.call(self._aio.__aexit__(*raised))

    def commit(self, timeout: float = SEND_SECONDS) -> None:
        """Let everybody see the message.

        Raises ConnectionFailedError or RequestTimedOutError after *timeout* seconds: then the
        broker will ask the check callback.
        """
        self._thread.call(self._aio.commit(timeout))

    def roll_back(self, timeout: float = SEND_SECONDS) -> None:
        """Let the message be as if it had never been; see `commit`."""
        self._thread.call(self._aio.roll_back(timeout))
