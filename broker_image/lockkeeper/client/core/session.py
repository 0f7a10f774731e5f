"""Sessions: what commits, acknowledges and comes again as one."""

from collections.abc import Callable, Iterator
from typing import Protocol, TypeVar

from lockkeeper.client.core.acknowledge import Acknowledge
from lockkeeper.client.core.consumer import ConsumerCore, ConsumerOwner
from lockkeeper.client.core.delivery import Delivery
from lockkeeper.client.core.producer import ProducerCore, ProducerOwner
from lockkeeper.client.core.redelivery import RedeliveryPolicyMap
from lockkeeper.client.core.requests import Request
from lockkeeper.client.core.transaction import Transaction, TransactionOwner
from lockkeeper.client.core.waiting import Moment, Procedure
from lockkeeper.client.errors import (
    IllegalStateError,
    TransactionInDoubtError,
    TransactionRolledBackError,
)
from lockkeeper.message.ids import ProducerId
from lockkeeper.message.openwire import (
    BaseCommand,
    ConsumerId,
    ConsumerInfo,
    MessageAck,
    ProducerInfo,
    RemoveInfo,
    Response,
    SessionId,
    SessionInfo,
)

T = TypeVar("T")


class SessionOwner(ConsumerOwner, ProducerOwner, TransactionOwner, Protocol):
    """The connection of a session; see `ConnectionCore`."""

    client_id: str | None
    consumers: dict[ConsumerId, ConsumerCore]
    producers: dict[ProducerId, ProducerCore]

    def request(self, command: BaseCommand, *, is_repeatable: bool = True) -> Request:
        """Send a command that wants an answer."""

    def answer(self, request: Request, moment: Moment) -> Procedure[Response]:
        """Wait for the answer to a request."""

    def session_closed(self, session: "SessionCore") -> None:
        """Forget a session."""


class SessionCore:
    """One line of work."""

    def __init__(self, connection: SessionOwner, info: SessionInfo, mode: Acknowledge) -> None:
        assert info.session_id is not None
        self.identifier: SessionId = info.session_id
        self.info = info
        self.mode = mode
        self.consumers: list[ConsumerCore] = []
        self.transaction = Transaction(connection) if self.is_transacted else None
        self.producer_infos: dict[ProducerId, ProducerInfo] = {}
        self.consumer_infos: dict[ConsumerId, ConsumerInfo] = {}
        self.is_closed = False
        self.listening = 0
        self._receiving = 0
        self._connection = connection
        self._producers: list[ProducerCore] = []
        self._leaving: list[ConsumerCore] = []
        self._made = 0

    @property
    def is_transacted(self) -> bool:
        """Tell whether sending and receiving happen at commit."""
        return self.mode is Acknowledge.TRANSACTED

    # Making things

    def open_producer(self, info: ProducerInfo, moment: Moment) -> Procedure[ProducerCore]:
        """Return a producer that the broker knows."""
        self.check_open()
        identifier = ProducerId(self.identifier.connection_id, self._next(), self.identifier.value)
        info.producer_id = identifier
        producer = ProducerCore(self._connection, info, self.transaction)
        self.producer_infos[identifier] = info
        request = self._connection.request(info)
        try:
            yield from self._connection.answer(request, moment)
        except BaseException:
            if self.producer_infos.pop(identifier, None) is not None and request.error is None:
                self._connection.post(RemoveInfo(object_id=identifier))
            raise
        self._producers.append(producer)
        self._connection.producers[identifier] = producer
        return producer

    def open_consumer(
        self,
        info: ConsumerInfo,
        policies: RedeliveryPolicyMap,
        moment: Moment,
        mode: Acknowledge | None = None,
    ) -> Procedure[ConsumerCore]:
        """Return a consumer that the broker knows. Raises InvalidSelectorError and the like."""
        self.check_open()
        connection = self._connection
        identifier = ConsumerId(self.identifier.connection_id, self.identifier.value, self._next())
        info.consumer_id = identifier
        info.client_id = connection.client_id
        info.dispatch_async = connection.options.dispatch_async
        consumer = ConsumerCore(connection, info, mode or self.mode, policies)
        connection.consumers[identifier] = consumer
        self.consumer_infos[identifier] = info
        # A broker may send messages before its answer: they are lost with the link, too.
        self.consumers.append(consumer)
        request = connection.request(info)
        try:
            yield from connection.answer(request, moment)
        except BaseException:
            if request.error is not None:
                # The broker has not made it.
                self.consumer_infos.pop(identifier, None)
            # Where nobody has waited for the answer, it may be that it is made.
            self.close_consumer(consumer)
            raise
        return consumer

    def _next(self) -> int:
        self._made += 1
        return self._made

    def check_open(self) -> None:
        """Raise an error when the session or its connection is closed."""
        if self.is_closed:
            raise IllegalStateError("the session is closed")
        self._connection.check_open()

    # Receiving

    def receive(
        self, consumer: ConsumerCore, timeout: float | None, moment: Moment
    ) -> Procedure[Delivery | None]:
        """Return the next delivery of a consumer; see `ConsumerCore.receive`."""
        self.check_no_listener()
        if self.transaction is not None:
            self.transaction.check_unprepared()
        self._receiving += 1
        try:
            return (yield from consumer.receive(timeout, moment))
        finally:
            self._receiving -= 1

    def check_no_listener(self) -> None:
        """Raise an error where a listener takes all that comes."""
        if self.listening:
            raise IllegalStateError("the session has a listener, so nobody else may receive")

    def listen(self) -> None:
        """Note that a listener begins. Raises an error while somebody receives."""
        if self._receiving:
            raise IllegalStateError("somebody receives in the session: a listener needs its own")
        if self.transaction is not None and self.transaction.is_branch:
            raise IllegalStateError(f"{self.transaction.identifier} is under way: no listeners")
        self.listening += 1

    def listener_ended(self) -> None:
        """Note that a listener has ended."""
        self.listening -= 1

    # Settling

    def acknowledge(self) -> None:
        """In CLIENT mode, acknowledge everything the session has consumed so far."""
        if self.mode is not Acknowledge.CLIENT:
            raise IllegalStateError("only a session in CLIENT mode acknowledges as a whole")
        for consumer in self.consumers:
            consumer.acknowledge_delivered()

    def acknowledge_message(self, consumer: ConsumerCore, delivery: Delivery) -> None:
        """Acknowledge as the mode says, for one message."""
        if self.mode is Acknowledge.CLIENT:
            self.acknowledge()
        elif self.mode is Acknowledge.INDIVIDUAL:
            consumer.acknowledge_one(delivery)

    def commit(self, moment: Moment) -> Procedure[None]:
        """Make everything sent and consumed since the last commit happen."""
        transaction = self._local_transaction()
        yield from self.complete(transaction.commit, moment)
        self.settle()

    def complete(
        self, act: Callable[[list[MessageAck], Moment], Procedure[T]], moment: Moment
    ) -> Procedure[T]:
        """Commit or prepare by *act*, with the acknowledgements of all that was consumed.

        When that fails, what was consumed comes again, or does not where nobody knows.
        """
        transaction = self.transacted()
        working = [*self.consumers, *self._leaving]
        if any(consumer.has_lost for consumer in working):
            yield from transaction.rollback(moment)
            error = TransactionRolledBackError("the connection was lost within the transaction")
            self.redeliver(error, moment)
            raise error
        acks = [ack for each in working for ack in each.acks_of_delivered()]
        try:
            return (yield from act(acks, moment))
        except TransactionRolledBackError as error:
            if isinstance(error, TransactionInDoubtError):
                self.settle()
            else:
                self.redeliver(error, moment)
            raise
        except BaseException:
            # Nobody knows any more: as if it had happened, so that nothing is consumed twice.
            self.settle()
            raise

    def rollback(self, cause: str | BaseException | None, moment: Moment) -> Procedure[None]:
        """Undo what was sent; consumed messages come again, the first of them first."""
        yield from self._local_transaction().rollback(moment)
        self.redeliver(cause, moment)

    def discard_sent(self, moment: Moment) -> Procedure[None]:
        """Undo what was sent; what was consumed stays in hand, for the commit to come."""
        yield from self._local_transaction().rollback(moment)

    def recover(self, moment: Moment, cause: str | BaseException | None = None) -> None:
        """In CLIENT and INDIVIDUAL mode, let everything not acknowledged come again."""
        if self.mode not in (Acknowledge.CLIENT, Acknowledge.INDIVIDUAL):
            raise IllegalStateError("only CLIENT and INDIVIDUAL sessions recover")
        self.redeliver(cause, moment)

    def transacted(self) -> Transaction:
        """Return the transaction. Raises an error where there are none."""
        if self.transaction is None:
            raise IllegalStateError("the session is not transacted")
        return self.transaction

    def _local_transaction(self) -> Transaction:
        transaction = self.transacted()
        if transaction.is_branch:
            raise IllegalStateError(f"{transaction.identifier} ends by the calls that begin tpc_")
        return transaction

    def settle(self) -> None:
        """Forget what was consumed: its transaction has happened."""
        for consumer in [*self.consumers, *self._leaving]:
            consumer.settle_delivered()
        self._let_go()

    def redeliver(self, cause: str | BaseException | None, moment: Moment) -> None:
        """Let what was consumed come again: its transaction has not happened."""
        for consumer in self.consumers:
            consumer.redeliver(cause, moment)
        self._let_go()

    def _let_go(self) -> None:
        leaving, self._leaving = self._leaving, []
        for consumer in leaving:
            self._leave(consumer)

    # What the connection says

    def introduction(self) -> Iterator[BaseCommand]:
        """Yield what the next broker must know of it (openwire.md section 7.8)."""
        yield self.info
        yield from self.producer_infos.values()
        yield from self.consumer_infos.values()

    def refused(self, number: int) -> BaseCommand | None:
        """Forget what the broker did not make, by its number; return it."""
        for infos in (self.producer_infos, self.consumer_infos):
            for identifier, info in infos.items():
                if info.command_id == number:
                    del infos[identifier]  # type: ignore[arg-type]
                    return info
        return None

    @property
    def is_bound(self) -> bool:
        """Tell whether there is a transaction that would be lost with the link."""
        if self.transaction is None:
            return False
        working = [*self.consumers, *self._leaving]
        return self.transaction.is_bound or any(consumer.has_delivered for consumer in working)

    def hold_back(self) -> None:
        """Hand out nothing more in a transaction until there is another link."""
        if self.is_transacted:
            for consumer in self.consumers:
                consumer.hold_back()

    def interrupt(self) -> None:
        """Note that the link is lost."""
        for producer in self._producers:
            producer.interrupt()
        for consumer in [*self.consumers, *self._leaving]:
            consumer.interrupt()
        if self.transaction is not None:
            has_lost = any(each.has_lost for each in [*self.consumers, *self._leaving])
            self.transaction.interrupt(has_lost)

    # Closing

    def close_consumer(self, consumer: ConsumerCore) -> None:
        """Let a consumer go, after the transaction that holds its messages."""
        if consumer not in self.consumers:
            return
        consumer.end(None)
        self.consumers.remove(consumer)
        if self.is_transacted and consumer.has_delivered:
            self._leaving.append(consumer)
        else:
            self._leave(consumer)

    def _leave(self, consumer: ConsumerCore) -> None:
        farewell = consumer.farewell()
        self._connection.consumers.pop(consumer.identifier, None)
        if self.consumer_infos.pop(consumer.identifier, None) is not None:
            self._connection.post(farewell)

    def close_producer(self, producer: ProducerCore) -> None:
        """Tell the broker that a producer is no more."""
        if not producer.is_closed:
            producer.end()
            self._producers.remove(producer)
            self._connection.producers.pop(producer.identifier, None)
            if self.producer_infos.pop(producer.identifier, None) is not None:
                self._connection.post(RemoveInfo(object_id=producer.identifier))

    def close(self) -> None:
        """Roll an open transaction back and end all producers and consumers."""
        if self.is_closed:
            return
        self.is_closed = True
        if self.transaction is not None:
            self.transaction.abandon()
        for consumer in [*self.consumers]:
            consumer.end(None)
            self._leave(consumer)
        self.consumers.clear()
        self._let_go()
        for producer in [*self._producers]:
            self.close_producer(producer)
        self._connection.post(RemoveInfo(object_id=self.identifier))
        self._connection.session_closed(self)
