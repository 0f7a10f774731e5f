"""Producers for asyncio."""

import asyncio
import logging
import secrets
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import count
from typing import Final, TypeAlias

from lockkeeper.client.errors import IllegalStateError
from lockkeeper.client.streams.aio.transaction import SEND_SECONDS, Outcome, Transaction
from lockkeeper.client.streams.core import commands
from lockkeeper.client.streams.core.messages import (
    Message,
    ReceivedMessage,
    SendStatus,
    Sent,
    read_messages,
)
from lockkeeper.client.streams.core.names import IS_HALF, PRODUCER_GROUP, UNIQUE_KEY
from lockkeeper.client.streams.core.routes import Partition, Route
from lockkeeper.client.streams.core.sharing import by_key
from lockkeeper.client.streams.errors import StreamError, UnreadableAnswerError
from lockkeeper.client.streams.links.link import Link
from lockkeeper.client.streams.links.network import FAILURES, Network, pause
from lockkeeper.protocols.rocketmq.codec import Command
from lockkeeper.protocols.rocketmq.codes import Request
from lockkeeper.protocols.rocketmq.errors import ProtocolError
from lockkeeper.protocols.rocketmq.messages import (
    BATCH_MESSAGES_MAX,
    PREPARED,
    InBatch,
    encode_batch,
)

_LOG = logging.getLogger(__name__)
BATCH_BYTES_MAX: Final = 1 << 20
_STORED: Final = frozenset(status.value for status in SendStatus)
_IN_BATCH_BYTES: Final = 24


Check: TypeAlias = Callable[[ReceivedMessage], Outcome | Awaitable[Outcome]]
"""Tells what became of the transaction of a message; a function is called in a thread."""


class Producer:
    """Sends messages; made by `Connection.producer`. Any task may use it.

    A send returns when its message is stored. What fails on the way is tried again, perhaps with
    the broker that has taken over: a message may then be there twice, with the same `unique_id`.
    """

    def __init__(
        self,
        network: Network,
        group: str,
        check: Check | None,
        closed: "Callable[[Producer], None]",
    ) -> None:
        self.group = group
        self._network = network
        self._check = check
        self._closed = closed
        self._is_closed = False
        self._turns = count(secrets.randbelow(1 << 16))
        self._unique = f"{secrets.token_hex(10)}".upper()
        self._numbers = count(1)

    async def __aenter__(self) -> "Producer":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def send(
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
        call is cancelled, the message may have been stored.
        """
        message = Message(body, tag, keys, properties or {}, delay_level, deliver_at)
        return await self._send_one(message, stream, partition, partition_key, timeout)

    async def send_message(
        self,
        stream: str,
        message: Message,
        *,
        partition: int | None = None,
        partition_key: str | None = None,
        timeout: float = SEND_SECONDS,
    ) -> Sent:
        """Send a message that is made already; see `send`."""
        return await self._send_one(message, stream, partition, partition_key, timeout)

    async def _send_one(
        self, message: Message, stream: str, number: int | None, key: str | None, timeout: float
    ) -> Sent:
        unique = self._unique_id()
        properties, body = message.written(unique), message.content()

        def asked(partition: Partition) -> Command:
            return commands.send(self.group, partition, body, properties, _now())

        partition, answer = await self._deliver(stream, number, key, asked, timeout)
        return _sent(partition, answer, [unique])[0]

    async def send_batch(
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
        written = []
        for message in messages:
            if message.is_delayed:
                raise ValueError("a batch has a message with a delay: send that one by itself")
            unique = self._unique_id()
            written.append((unique, InBatch(message.content(), message.written(unique))))
        if partition is None and partition_key is None and written:
            partition_key = written[0][0]
        sent: list[Sent] = []
        for part in _parts(written):
            body = encode_batch([each for _, each in part])

            def asked(partition: Partition, body: bytes = body) -> Command:
                return commands.send(self.group, partition, body, {}, _now(), is_batch=True)

            at, answer = await self._deliver(stream, partition, partition_key, asked, timeout)
            sent += _sent(at, answer, [unique for unique, _ in part])
        return sent

    async def _deliver(
        self,
        stream: str,
        number: int | None,
        key: str | None,
        asked: Callable[[Partition], Command],
        timeout: float,
    ) -> tuple[Partition, Command]:
        """Have a broker store something; return where it is, and the answer."""
        if number is not None and key is not None:
            raise ValueError("a message goes to a partition by number or by key, not by both")
        if self._is_closed:
            raise IllegalStateError("the producer is closed")
        deadline = asyncio.get_running_loop().time() + timeout
        failures = 0
        while True:
            left = deadline - asyncio.get_running_loop().time()
            seconds = min(self._network.means.request_timeout, max(0.001, left))
            try:
                route = await self._network.route_for_sending(stream)
                partition = self._choose(route, number, key)
                request = asked(partition)
                answer = await self._network.ask(route, partition.broker, request, seconds, _STORED)
            except FAILURES as error:
                await pause(failures, deadline, error)
                failures += 1
            else:
                return partition, answer

    def _choose(self, route: Route, number: int | None, key: str | None) -> Partition:
        there = route.writable
        if not there:
            raise StreamError(f"no partition of {route.stream} may be written to now")
        if number is not None:
            if not 0 <= number < len(there):
                raise ValueError(f"{route.stream} has the partitions 0 to {len(there) - 1}")
            return there[number]
        return there[next(self._turns) % len(there)] if key is None else by_key(there, key)

    def _unique_id(self) -> str:
        return f"{self._unique}{next(self._numbers) & 0xFFFFFFFFFFFF:012X}"

    # Transactions

    async def transaction(
        self,
        stream: str,
        message: Message,
        *,
        partition: int | None = None,
        partition_key: str | None = None,
        timeout: float = SEND_SECONDS,
    ) -> Transaction:
        """Send a message that nobody sees before the transaction is committed.

        As a block, `async with await producer.transaction(…)`, it commits at the end, and rolls
        back when the block raises. Where the broker hears of no outcome it asks the group's *check*
        callback. Raises IllegalStateError without one, and as `send` does.
        """
        if self._check is None:
            raise IllegalStateError(
                "a transaction needs a producer with a check callback: producer(group, check)"
            )
        if message.is_delayed:
            raise ValueError("the message of a transaction has no delay")
        unique = self._unique_id()
        properties = {**message.written(unique), IS_HALF: "true", PRODUCER_GROUP: self.group}
        body = message.content()

        def asked(at: Partition) -> Command:
            return commands.send(self.group, at, body, properties, _now(), system_flag=PREPARED)

        at, answer = await self._deliver(stream, partition, partition_key, asked, timeout)
        (sent,) = _sent(at, answer, [unique])
        return Transaction(self._network, self.group, sent)

    def is_asked(self, request: Command) -> bool:
        """Tell whether a question about a transaction is for this producer."""
        try:
            (message,) = read_messages(request.body, "")
        except (ProtocolError, ValueError):
            return False
        return self._check is not None and message.headers.get(PRODUCER_GROUP) == self.group

    async def answer_check(self, link: Link, request: Command) -> None:
        """Have the check callback tell what became of a transaction, and tell the broker."""
        assert self._check is not None
        (message,) = read_messages(request.body, request.fields.get("bname", ""))
        try:
            if asyncio.iscoroutinefunction(self._check):
                outcome = await self._check(message)
            else:
                outcome = await asyncio.to_thread(self._check, message)
        except Exception:
            _LOG.exception("a check of the transaction of %s failed", message.unique_id)
            return
        ending = commands.request(
            Request.END_TRANSACTION,
            producerGroup=self.group,
            tranStateTableOffset=request.fields.get("tranStateTableOffset", "0"),
            commitLogOffset=request.fields.get("commitLogOffset", "0"),
            commitOrRollback=outcome.value,
            fromTransactionCheck=True,
            msgId=message.headers.get(UNIQUE_KEY),
            transactionId=request.fields.get("transactionId"),
            topic=message.stream,
        )
        if link.is_open:
            link.say_one_way(ending)

    async def close(self) -> None:
        """Send nothing any more."""
        if not self._is_closed:
            self._is_closed = True
            self._closed(self)


def _now() -> int:
    return int(time.time() * 1000)


def _parts(written: list[tuple[str, InBatch]]) -> Iterator[list[tuple[str, InBatch]]]:
    """Yield messages that travel together."""
    part: list[tuple[str, InBatch]] = []
    size = 0
    for unique, each in written:
        properties = sum(map(len, each.properties)) + sum(map(len, each.properties.values()))
        its_size = _IN_BATCH_BYTES + len(each.body) + properties
        if part and (size + its_size > BATCH_BYTES_MAX or len(part) == BATCH_MESSAGES_MAX):
            yield part
            part, size = [], 0
        part.append((unique, each))
        size += its_size
    if part:
        yield part


def _sent(partition: Partition, answer: Command, unique_ids: list[str]) -> list[Sent]:
    """Return where messages are, as an answer tells. Raises UnreadableAnswerError."""
    ids = answer.fields.get("msgId", "").split(",")
    try:
        number, offset = int(answer.fields["queueId"]), int(answer.fields["queueOffset"])
    except (KeyError, ValueError) as wrong:
        text = "an answer to a send that does not tell where the message is"
        raise UnreadableAnswerError(text) from wrong
    if len(ids) != len(unique_ids):
        raise UnreadableAnswerError(f"{len(ids)} ids for {len(unique_ids)} messages")
    at = partition._replace(number=number)
    return [
        Sent(at, offset + place, identifier, unique, SendStatus(answer.code))
        for place, (identifier, unique) in enumerate(zip(ids, unique_ids, strict=True))
    ]
