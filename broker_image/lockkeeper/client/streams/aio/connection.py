"""Connections for asyncio: what producers, consumers and readers of one client share."""

import asyncio
import logging
import os
import secrets
import socket
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from lockkeeper.client.aio.within import begin_outside, is_within
from lockkeeper.client.errors import ConnectionFailedError, IllegalStateError, RequestTimedOutError
from lockkeeper.client.streams.aio.calling import Listener
from lockkeeper.client.streams.aio.consumer import GroupConsumer
from lockkeeper.client.streams.aio.producer import Check, Producer
from lockkeeper.client.streams.aio.reader import Reader
from lockkeeper.client.streams.core import commands
from lockkeeper.client.streams.core.groups import GroupSettings, read_reset
from lockkeeper.client.streams.core.positions import FIRST, Position
from lockkeeper.client.streams.core.subscriptions import ALL, Sql, subscription
from lockkeeper.client.streams.errors import StreamRefusedError, refusal
from lockkeeper.client.streams.links.addresses import Credentials, Means, parse_addresses
from lockkeeper.client.streams.links.link import Link
from lockkeeper.client.streams.links.network import Network
from lockkeeper.protocols.rocketmq.codec import Command
from lockkeeper.protocols.rocketmq.codes import Request, Response
from lockkeeper.protocols.rocketmq.errors import ProtocolError

_LOG = logging.getLogger(__name__)
DEFAULT_ADDRESS = "127.0.0.1:9876"
EVERYBODY = "CLIENT_INNER_PRODUCER"
"""The producer group that each client of RocketMQ is in."""
DEFAULT_PRODUCER = "DEFAULT_PRODUCER"
CLOSE_SECONDS = 15.0
_SETTINGS = GroupSettings()


class Part(Protocol):
    """A producer, consumer or reader of a connection."""

    async def close(self) -> None:
        """End it."""


class Connection:
    """A client of streams: its links, its id, its heartbeats; made by `connect`.

    Any task may use it. A group has one consumer of a connection at most.
    """

    def __init__(self, addresses: str, means: Means, client_id: str | None) -> None:
        self.client_id = client_id or _client_id()
        self.network = Network(
            parse_addresses(addresses), means, self._take_question, self._introduce, self._note_loss
        )
        self._producers: dict[str, list[Producer]] = {}
        self._consumers: dict[str, GroupConsumer] = {}
        self._parts: list[Part] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_closed = False
        self._beating = asyncio.create_task(self._beat(), name="heartbeats")

    async def __aenter__(self) -> "Connection":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    # What an application has of it

    async def producer(self, group: str = DEFAULT_PRODUCER, check: Check | None = None) -> Producer:
        """Return what sends messages.

        The *group* matters for transactions alone: a broker that does not know what became of one
        asks any producer of the group, and *check* answers, see `Producer.transaction`.
        """
        self._require_open()
        producer = Producer(self.network, group, check, self._forget_producer)
        self._producers.setdefault(group, []).append(producer)
        self._parts.append(producer)
        await self.beat()
        return producer

    async def reader(
        self,
        stream: str,
        wanted: str | Sql = ALL,
        begin: Position = FIRST,
        partitions: Sequence[int] | None = None,
        *,
        timeout: float = 30.0,
    ) -> Reader:
        """Return what reads a stream without a group, from a position in each partition.

        It reads all *partitions*, or those with such places in the order of the route. Raises
        NoSuchStreamError; what may pass is waited for, *timeout* seconds at most.
        """
        self._require_open()
        reader = Reader(self.network, subscription(stream, wanted), self._parts.remove)
        self._parts.append(reader)
        try:
            await reader.open(begin, partitions, timeout)
        except BaseException:
            await reader.close()
            raise
        return reader

    async def consumer(
        self,
        group: str,
        streams: Mapping[str, str | Sql] | str,
        listener: Listener,
        settings: GroupSettings = _SETTINGS,
        *,
        timeout: float = 30.0,
    ) -> GroupConsumer:
        """Return a member of a group, which has *listener* consume messages of *streams*.

        They are told by name, with the tags or the condition of what is wanted; one name alone
        means all of that stream. A coroutine function is called in the event loop, another one in a
        thread. A message is consumed when the listener returns, and comes again when it raises. All
        members of a group, whoever they are, have to subscribe to the same. Waits until partitions
        were shared, *timeout* seconds at most. Raises ValueError for what is no subscription, and
        IllegalStateError for a second member of the group in this connection.
        """
        self._require_open()
        if group in self._consumers:
            raise IllegalStateError(
                f"this connection has a member of {group} already: a second one needs its own"
            )
        wanted = {streams: ALL} if isinstance(streams, str) else streams
        consumer = GroupConsumer(
            self.network, self.client_id, group, wanted, listener, settings, self.beat,
            self._forget_consumer,
        )  # fmt: skip
        self._consumers[group] = consumer
        self._parts.append(consumer)
        try:
            await consumer.open(timeout)
        except BaseException:
            await consumer.close()
            raise
        return consumer

    async def close(self, timeout: float = CLOSE_SECONDS) -> None:
        """Close everything that was made of it; *timeout* seconds are for what is under way.

        A listener that closes its own connection does not wait for that.
        """
        if self.is_in_listener:
            self.end_listeners()
            begin_outside(self.close(timeout))
            return
        if self._is_closed:
            return
        self._is_closed = True
        try:
            async with asyncio.timeout(timeout):
                await asyncio.gather(*(part.close() for part in list(self._parts)))
        except TimeoutError:
            _LOG.warning("closing a connection: not all was done within %g s", timeout)
        finally:
            for task in (self._beating, *self._tasks):
                task.cancel()
            await asyncio.gather(self._beating, *self._tasks, return_exceptions=True)
            await self.network.close()

    @property
    def is_in_listener(self) -> bool:
        """Tell whether a listener of this connection makes this call."""
        return any(map(is_within, list(self._consumers.values())))

    def end_listeners(self) -> None:
        """Give listeners nothing any more; for any thread."""
        for consumer in list(self._consumers.values()):
            consumer.end_listener()

    def _require_open(self) -> None:
        if self._is_closed:
            raise IllegalStateError("the connection is closed")

    def _forget_producer(self, producer: Producer) -> None:
        self._parts.remove(producer)
        others = self._producers[producer.group]
        others.remove(producer)
        if not others:
            del self._producers[producer.group]

    def _forget_consumer(self, consumer: GroupConsumer) -> None:
        self._parts.remove(consumer)
        del self._consumers[consumer.group]

    # Heartbeats

    def _heartbeat(self) -> Command:
        memberships = [each.told() for each in self._consumers.values()]
        return commands.heartbeat(
            self.client_id, sorted({EVERYBODY, *self._producers}), memberships
        )

    async def _introduce(self, link: Link) -> None:
        """Tell a broker who we are; a silent one is taken for dead. Raises StreamRefusedError."""
        try:
            answer = await link.request(self._heartbeat())
        except (ConnectionFailedError, RequestTimedOutError) as error:
            link.lose(error)
            return
        if answer.code != Response.SUCCESS:
            raise refusal(answer)

    async def beat(self) -> None:
        """Tell all brokers that we live, and what we do. Raises StreamRefusedError."""
        told = map(self._introduce, self.network.brokers())
        for refused in await asyncio.gather(*told, return_exceptions=True):
            if isinstance(refused, BaseException):
                raise refused

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(self.network.means.heartbeat_interval)
            try:
                await self.beat()
            except StreamRefusedError as error:
                _LOG.warning("a heartbeat is refused: %s", error)

    def _note_loss(self) -> None:
        for consumer in self._consumers.values():
            consumer.share_soon()

    # Questions of brokers

    def _take_question(self, link: Link, request: Command) -> bool:
        if request.code == Request.NOTIFY_CONSUMER_IDS_CHANGED:
            consumer = self._consumers.get(request.fields.get("consumerGroup", ""))
            if consumer is not None:
                consumer.share_soon()
        elif request.code == Request.RESET_CONSUMER_CLIENT_OFFSET:
            self._reset(request)
        elif request.code == Request.CHECK_TRANSACTION_STATE:
            self._check_transaction(link, request)
        else:
            return False
        return True

    def _reset(self, request: Command) -> None:
        consumer = self._consumers.get(request.fields.get("group", ""))
        if consumer is None:
            return
        try:
            consumer.go_on_at(read_reset(request.body))
        except ProtocolError as wrong:
            _LOG.warning("a broker resets %s in vain: %s", consumer.group, wrong)

    def _check_transaction(self, link: Link, request: Command) -> None:
        for producer in [each for group in self._producers.values() for each in group]:
            if producer.is_asked(request):
                self._begin(producer.answer_check(link, request))
                return
        _LOG.warning("a broker asks about a transaction of no producer here")

    def _begin(self, coroutine: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _client_id() -> str:
    return f"{socket.gethostname()}@{os.getpid()}#{secrets.token_hex(6)}"


async def connect(
    addresses: str = DEFAULT_ADDRESS,
    credentials: Credentials | None = None,
    client_id: str | None = None,
    means: Means | None = None,
) -> Connection:
    """Return a connection by way of the name servers at `host:port;host:port`.

    Nothing is dialled before it is needed. *means* has the limits and times of links, and TLS.
    Raises AddressError.
    """
    settings = means or Means()
    if credentials is not None:
        settings = replace(settings, credentials=credentials)
    return Connection(addresses, settings, client_id)
