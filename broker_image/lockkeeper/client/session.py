"""Sessions: where producers and consumers are made, and transactions ended."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Protocol

from lockkeeper.client.acknowledge import Acknowledge
from lockkeeper.client.consumer import Consumer
from lockkeeper.client.errors import (
    IllegalStateError,
    MessagingError,
    TransactionInDoubtError,
    TransactionRolledBackError,
)
from lockkeeper.client.messages import DestinationName, ReceivedMessage, destination_of
from lockkeeper.client.producer import PRIORITY_DEFAULT, Producer, check_priority
from lockkeeper.client.redelivery import RedeliveryPolicy
from lockkeeper.client.transactions import TransactionContext
from lockkeeper.client.transport import Transport
from lockkeeper.message.ids import ProducerId
from lockkeeper.message.openwire import (
    ConnectionId,
    ConsumerId,
    ConsumerInfo,
    Message,
    ProducerInfo,
    RemoveInfo,
    RemoveSubscriptionInfo,
    SessionId,
)

PREFETCH_QUEUE = 1000
PREFETCH_TOPIC = 32766
PREFETCH_DURABLE = 100
PREFETCH_BROWSER = 500


class SessionOwner(Protocol):
    """The connection of a session; see `Connection`."""

    identifier: ConnectionId
    client_id: str | None
    redelivery: RedeliveryPolicy
    consumers: dict[ConsumerId, Consumer]

    def next_transaction(self) -> int:
        """Return a number that no other transaction of this connection has."""

    def session_closed(self, session: "Session") -> None:
        """Forget a session."""


class Session:
    """One line of work, for one thread at a time; made by `Connection.session`."""

    def __init__(
        self,
        connection: SessionOwner,
        transport: Transport,
        identifier: SessionId,
        mode: Acknowledge,
    ) -> None:
        self.identifier = identifier
        self.mode = mode
        self._connection = connection
        self._transport = transport
        self._transaction = TransactionContext(
            transport, connection.identifier, connection.next_transaction
        )
        self._producers: list[Producer] = []
        self._consumers: list[Consumer] = []
        self._leaving: list[Consumer] = []
        self._made = 0
        self._is_closed = False

    @property
    def is_transacted(self) -> bool:
        """Tell whether sending and receiving happen at commit."""
        return self.mode is Acknowledge.TRANSACTED

    # Making things

    def producer(
        self,
        destination: DestinationName | None = None,
        *,
        persistent: bool = True,
        priority: int = PRIORITY_DEFAULT,
        time_to_live: float | None = None,
    ) -> Producer:
        """Return a producer for *destination*, or for one named with each message."""
        self._check_open()
        target = None if destination is None else destination_of(destination)
        check_priority(priority)
        number = self._next()
        identifier = ProducerId(self.identifier.connection_id, number, self.identifier.value)
        info = ProducerInfo(producer_id=identifier, destination=target)
        self._transport.request(info, key=identifier).result()
        producer = Producer(
            self, self._transport, identifier, target, persistent, priority, time_to_live
        )
        self._producers.append(producer)
        return producer

    def consumer(
        self,
        destination: DestinationName,
        selector: str | None = None,
        *,
        prefetch: int | None = None,
        subscription_name: str | None = None,
        no_local: bool = False,
        exclusive: bool = False,
        redelivery: RedeliveryPolicy | None = None,
    ) -> Consumer:
        """Return a consumer; with a *subscription_name* a durable subscriber of a topic.

        *prefetch* is how many messages the broker may send ahead; with 0 it sends one for each
        call of `receive`. Raises InvalidSelectorError and other refusals.
        """
        self._check_open()
        target = destination_of(destination)
        if subscription_name is not None and not (target.is_topic and self._connection.client_id):
            raise IllegalStateError("a durable subscription needs a topic and a client id")
        if prefetch is None:
            prefetch = PREFETCH_TOPIC if target.is_topic else PREFETCH_QUEUE
            prefetch = PREFETCH_DURABLE if subscription_name else prefetch
        info = ConsumerInfo(
            destination=target,
            prefetch_size=prefetch,
            selector=selector,
            subscription_name=subscription_name,
            no_local=no_local,
            exclusive=exclusive,
        )
        policy = redelivery or self._connection.redelivery
        consumer = self._open(info, self.mode, policy)
        self._consumers.append(consumer)
        return consumer

    def browse(
        self, destination: DestinationName, selector: str | None = None
    ) -> Iterator[ReceivedMessage]:
        """Yield the messages of a queue in its order, without consuming them.

        Raises IllegalStateError when the connection is lost meanwhile.
        """
        self._check_open()
        info = ConsumerInfo(
            destination=destination_of(destination),
            prefetch_size=PREFETCH_BROWSER,
            selector=selector,
            browser=True,
        )
        consumer = self._open(info, Acknowledge.AUTO, self._connection.redelivery)
        try:
            while (message := consumer.receive()) is not None:
                yield message
        finally:
            consumer.close()

    def _open(self, info: ConsumerInfo, mode: Acknowledge, policy: RedeliveryPolicy) -> Consumer:
        identifier = ConsumerId(self.identifier.connection_id, self.identifier.value, self._next())
        info.consumer_id = identifier
        info.client_id = self._connection.client_id
        info.dispatch_async = True
        consumer = Consumer(self, self._transport, info, mode, policy)
        self._connection.consumers[identifier] = consumer
        try:
            self._transport.request(info, key=identifier).result()
        except BaseException:
            del self._connection.consumers[identifier]
            raise
        return consumer

    def unsubscribe(self, subscription_name: str) -> None:
        """Delete a durable subscription. Raises InvalidDestinationError when there is none."""
        info = RemoveSubscriptionInfo(
            connection_id=self._connection.identifier,
            subscription_name=subscription_name,
            client_id=self._connection.client_id,
        )
        self._transport.request(info).result()

    def _next(self) -> int:
        self._made += 1
        return self._made

    def _check_open(self) -> None:
        if self._is_closed:
            raise IllegalStateError("the session is closed")

    # Settling

    def acknowledge(self) -> None:
        """In CLIENT mode, acknowledge everything the session has consumed so far."""
        if self.mode is not Acknowledge.CLIENT:
            raise IllegalStateError("only a session in CLIENT mode acknowledges as a whole")
        for consumer in self._consumers:
            consumer.acknowledge_delivered()

    def reject(self, message: ReceivedMessage, cause: str | BaseException) -> None:
        """Send a consumed message to the dead letter queue, with *cause* as its reason.

        This is at once and for good: it is not part of a transaction.
        """
        message.reject(cause)

    def send_in_transaction(self, message: Message) -> None:
        """Make a message part of the session's transaction."""
        self._transaction.send(message)

    def commit(self) -> None:
        """Make everything sent and consumed since the last commit happen.

        Raises TransactionRolledBackError when it has not happened: consumed messages come
        again, sent ones must be sent again. Its kind TransactionInDoubtError says that it may
        have happened, because the connection broke at this moment.
        """
        self._check_transacted()
        working = [*self._consumers, *self._leaving]
        try:
            if any(consumer.has_lost for consumer in working):
                self._transaction.rollback()
                raise TransactionRolledBackError("the connection was lost within the transaction")
            acks = [ack for each in working if (ack := each.ack_of_delivered(None)) is not None]
            self._transaction.commit(acks)
        except TransactionInDoubtError:
            self._settle(working)
            raise
        except TransactionRolledBackError as error:
            self._redeliver(error)
            raise
        self._settle(working)

    def rollback(self, cause: str | BaseException | None = None) -> None:
        """Undo what was sent; consumed messages come again, the first of them first.

        One that came too often (RedeliveryPolicy) goes to the dead letter queue with *cause*.
        """
        self._check_transacted()
        self._transaction.rollback()
        self._redeliver(cause)

    def recover(self) -> None:
        """In CLIENT and INDIVIDUAL mode, let everything not acknowledged come again."""
        if self.mode not in (Acknowledge.CLIENT, Acknowledge.INDIVIDUAL):
            raise IllegalStateError("only CLIENT and INDIVIDUAL sessions recover")
        self._redeliver(None)

    def _check_transacted(self) -> None:
        if not self.is_transacted:
            raise IllegalStateError("the session is not transacted")

    def _settle(self, consumers: list[Consumer]) -> None:
        for consumer in consumers:
            consumer.settle_delivered()
        self._let_go()

    def _redeliver(self, cause: str | BaseException | None) -> None:
        for consumer in self._consumers:
            consumer.redeliver(cause)
        self._let_go()

    def _let_go(self) -> None:
        leaving, self._leaving = self._leaving, []
        for consumer in leaving:
            self._leave(consumer)

    # Closing

    def consumer_closed(self, consumer: Consumer) -> None:
        """Let a consumer go, after the transaction that holds its messages."""
        if consumer in self._consumers:
            self._consumers.remove(consumer)
        if self.is_transacted and consumer.has_delivered:
            self._leaving.append(consumer)
        else:
            self._leave(consumer)

    def _leave(self, consumer: Consumer) -> None:
        self._connection.consumers.pop(consumer.identifier, None)
        consumer.leave()

    def producer_closed(self, producer: Producer) -> None:
        """Forget a producer."""
        self._producers.remove(producer)

    def close(self) -> None:
        """Roll an open transaction back and end all producers and consumers."""
        if self._is_closed:
            return
        self._is_closed = True
        # Without a connection nothing is left to roll back.
        with suppress(MessagingError):
            self._transaction.rollback()
        for consumer in [*self._consumers]:
            consumer.end(None)
            self._leave(consumer)
        self._consumers.clear()
        self._let_go()
        for producer in [*self._producers]:
            producer.close()
        self._transport.remove(self.identifier, RemoveInfo(object_id=self.identifier))
        self._connection.session_closed(self)

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
