"""Every command but messages and acknowledgements: what each asks of the core."""

from collections.abc import Callable
from typing import Any, Final

from lockkeeper.broker.access.permissions import Right
from lockkeeper.broker.access.rights import Rights
from lockkeeper.broker.connections import Connection
from lockkeeper.broker.core import Broker
from lockkeeper.broker.errors import (
    AccessDeniedError,
    BrokerError,
    InvalidDestinationError,
    TransactionError,
)
from lockkeeper.broker.names import check_name
from lockkeeper.broker.outputs import InDoubt, Introduction, Prepared, Reply
from lockkeeper.broker.subscription_manager import DELIVERED_UNKNOWN
from lockkeeper.broker.subscriptions.consumer import Consumer
from lockkeeper.broker.subscriptions.request import ConsumeRequest
from lockkeeper.message import openwire
from lockkeeper.message.ids import ProducerId, XATransactionId
from lockkeeper.message.openwire import DestinationOperation, TransactionOperation
from lockkeeper.protocols.openwire.convert import DispatchHeader
from lockkeeper.protocols.openwire.login import BEFORE_LOGIN, Login
from lockkeeper.protocols.openwire.phases import OPEN, Progress
from lockkeeper.protocols.settings import ListenerSettings
from lockkeeper.store.base import Receipt

ARRAY_ITEMS_MAX: Final = 32_767
"""So many items a list of the wire may have; who recovers asks again when those are ended."""

_Handler = Callable[["Commands", Any, Receipt | None], None]


class Commands:
    """Carries out the commands of one connection, and tells its `Progress` of them.

    `windows` holds the producers that asked for a window, by their id, in bytes. `login` is the
    last one of a client that has to say who it is, `peer` a broker that has introduced itself, and
    `subscriptions` the durable ones that it has told of.
    """

    __slots__ = (
        "_broker",
        "_connection",
        "_progress",
        "_settings",
        "login",
        "peer",
        "subscriptions",
        "windows",
    )

    def __init__(
        self,
        broker: Broker,
        settings: ListenerSettings,
        connection: Connection,
        progress: Progress,
    ) -> None:
        self._broker = broker
        self._settings = settings
        self._connection = connection
        self._progress = progress
        self.windows: dict[ProducerId, int] = {}
        self.login: Login | None = None
        self.peer: openwire.BrokerInfo | None = None
        self.subscriptions: tuple[openwire.ConsumerInfo, ...] | None = None

    def carry_out(self, command: openwire.BaseCommand, receipt: Receipt | None) -> None:
        """Carry out *command*; *receipt* answers it. Raises BrokerError."""
        if self._progress.phase is not OPEN and not isinstance(command, BEFORE_LOGIN):
            raise AccessDeniedError("User is not authenticated.")
        handler = _HANDLERS.get(type(command))
        if handler is None:
            raise BrokerError(f"{type(command).__name__} is not for a broker")
        handler(self, command, receipt)

    def _answer(self, command: openwire.BaseCommand, receipt: Receipt | None) -> None:
        if receipt is not None:
            receipt.settle()

    def _connect(self, info: openwire.ConnectionInfo, receipt: Receipt | None) -> None:
        if info.connection_id is None or not info.connection_id.value:
            raise BrokerError("a ConnectionInfo without its connectionId")
        authenticator = self._broker.authenticator
        if authenticator is None:
            self._announce(info, receipt, info.user_name or "")
            self._hand_over()
            return

        if self._progress.phase is OPEN:
            name = self._connection.identifier
            raise BrokerError(f"the connection is announced already, as {name}")

        def announce(rights: Rights) -> None:
            self._connection.rights = rights
            self._announce(info, receipt, info.user_name or "")
            self._progress.become("admit")
            self._hand_over()

        self._progress.become("ask")
        self.login = Login(self._connection, info.user_name or None, receipt, announce)
        user, password = info.user_name or None, info.password or None
        authenticator.check_password(
            user, password, self.login.take_verdict, self._connection.address
        )

    def _announce(
        self, info: openwire.ConnectionInfo, receipt: Receipt | None, user_name: str
    ) -> None:
        connection = self._connection
        assert info.connection_id is not None and info.connection_id.value is not None
        connection.user_name = user_name
        connection.fault_tolerant = info.fault_tolerant or info.failover_reconnect
        connection.reconnected = info.failover_reconnect
        identifier, client_id = info.connection_id.value, info.client_id or ""
        steals, acceptor = self._settings.allow_link_stealing, self._settings.acceptor
        if self.peer is not None and acceptor is not None:
            # A bridge that comes again is the same one, whose socket is half dead.
            client_id, steals = acceptor.client_id(self.peer, client_id), True
        self._broker.connect(connection, identifier, client_id, steals)
        self._answer(info, receipt)
        if info.manageable:
            self._tell_of_others()

    def _tell_of_others(self) -> None:
        cluster = self._settings.cluster
        if cluster is None:
            self._connection.put(Introduction("", ""))
        else:
            cluster.introduce(self._broker, self._connection)

    def _introduce(self, info: openwire.BrokerInfo, receipt: Receipt | None) -> None:
        if info.network_connection:
            self.peer = info
        self._answer(info, receipt)

    def _learn_subscriptions(
        self, info: openwire.BrokerSubscriptionInfo, receipt: Receipt | None
    ) -> None:
        if self.peer is not None:
            self.subscriptions = info.subscription_infos or ()
        self._answer(info, receipt)

    def _hand_over(self) -> None:
        """Have a bridge go on if the peer is another broker."""
        if self.peer is not None and self._settings.acceptor is not None:
            self._progress.become("hand over")

    def _add_producer(self, info: openwire.ProducerInfo, receipt: Receipt | None) -> None:
        if info.producer_id is None:
            raise BrokerError("a ProducerInfo without its producerId")
        self._broker.add_producer(self._connection, info.producer_id, info.destination)
        if info.window_size > 0:
            self.windows[info.producer_id] = info.window_size
        self._answer(info, receipt)

    def _add_consumer(self, info: openwire.ConsumerInfo, receipt: Receipt | None) -> None:
        if info.destination is None or info.consumer_id is None:
            raise InvalidDestinationError("a ConsumerInfo needs a destination and a consumerId")
        known = self._connection.consumers.get(info.consumer_id)
        if known is not None:
            self._answer(info, receipt)
            return
        request = ConsumeRequest(
            info.consumer_id,
            info.destination,
            info.prefetch_size,
            info.selector,
            info.no_local,
            info.browser,
            info.subscription_name,
            DispatchHeader(info.consumer_id),
            info.exclusive,
            info.priority,
            info.retroactive,
            info.maximum_pending_message_limit,
            info.optimized_acknowledge,
        )
        self._broker.subscriptions.subscribe(self._connection, request, receipt)

    def _remove(self, info: openwire.RemoveInfo, receipt: Receipt | None) -> None:
        subject, connection = info.object_id, self._connection
        if isinstance(subject, openwire.ConnectionId):
            self._broker.disconnect(connection, info.last_delivered_sequence)
            if self._broker.authenticator is not None:
                self._progress.become("leave")
                connection.part()
        elif isinstance(subject, openwire.ConsumerId):
            consumer = connection.consumers.get(subject)
            if consumer is not None:
                self._broker.subscriptions.unsubscribe(consumer, info.last_delivered_sequence)
        elif isinstance(subject, openwire.SessionId):
            for consumer in self._consumers_of(subject):
                self._broker.subscriptions.unsubscribe(consumer, info.last_delivered_sequence)
            for producer in self._producers_of(subject):
                self._forget_producer(producer)
        elif isinstance(subject, ProducerId):
            self._forget_producer(subject)
        self._answer(info, receipt)

    def _forget_producer(self, producer: ProducerId) -> None:
        self._broker.remove_producer(self._connection, producer)
        self.windows.pop(producer, None)

    def _producers_of(self, session: openwire.SessionId) -> list[ProducerId]:
        return [
            producer
            for producer in self._connection.producers
            if isinstance(producer, ProducerId) and producer.session_id == session.value
        ]

    def _consumers_of(self, session: openwire.SessionId) -> list[Consumer]:
        return [
            consumer
            for identifier, consumer in self._connection.consumers.items()
            if isinstance(identifier, openwire.ConsumerId)
            and identifier.session_id == session.value
        ]

    def _manage_destination(self, info: openwire.DestinationInfo, receipt: Receipt | None) -> None:
        destination, connection = info.destination, self._connection
        if destination is None:
            raise InvalidDestinationError("a DestinationInfo without its destination")
        check_name(destination)
        removes = info.operation_type == DestinationOperation.REMOVE
        if destination.is_temporary and removes:
            self._broker.destinations.remove_temporary(connection, destination)
        elif destination.is_temporary:
            self._broker.destinations.create_temporary(connection, destination)
        elif removes:
            if connection.rights is not None:
                connection.rights.require(Right.REMOVE, destination)
            self._broker.destinations.remove(destination, receipt)
            return
        else:
            if connection.rights is not None:
                self._broker.guard.check_creating(connection.rights, destination)
            self._broker.route(destination)
        self._answer(info, receipt)

    def _forget_subscription(
        self, info: openwire.RemoveSubscriptionInfo, receipt: Receipt | None
    ) -> None:
        client_id = self._connection.client_id or info.client_id or ""
        name = info.subscription_name or ""
        rights = self._connection.rights
        self._broker.subscriptions.lasting.forget(client_id, name, receipt, rights)

    def _transact(self, info: openwire.TransactionInfo, receipt: Receipt | None) -> None:
        transactions, connection = self._broker.transactions, self._connection
        operation, identifier = info.type, info.transaction_id
        if operation == TransactionOperation.RECOVER:
            if isinstance(receipt, Reply):
                told = transactions.in_doubt()[:ARRAY_ITEMS_MAX]
                connection.put(InDoubt(receipt.correlation, told))
            return
        if identifier is None:
            raise TransactionError("a TransactionInfo without its transactionId")
        if operation == TransactionOperation.BEGIN:
            transactions.begin(connection, identifier)
        elif operation == TransactionOperation.PREPARE:
            self._prepare(identifier, receipt)
            return
        elif operation in (
            TransactionOperation.COMMIT_ONE_PHASE,
            TransactionOperation.COMMIT_TWO_PHASE,
        ):
            is_one_phase = operation == TransactionOperation.COMMIT_ONE_PHASE
            transactions.commit(connection, identifier, receipt, is_one_phase)
            return
        elif operation == TransactionOperation.ROLLBACK:
            transactions.rollback(connection, identifier, receipt)
            return
        elif operation == TransactionOperation.FORGET:
            transactions.heuristics.forget(identifier)
        # An END only parts the branch from its session; what follows names the branch again.
        self._answer(info, receipt)

    def _prepare(self, identifier: object, receipt: Receipt | None) -> None:
        if not isinstance(identifier, XATransactionId):
            raise TransactionError("only XA transactions can be prepared")
        correlation = receipt.correlation if isinstance(receipt, Reply) else 0
        answer = _PreparedReceipt(self._connection, correlation)
        if not self._broker.transactions.prepare(self._connection, identifier, answer):
            # What was told again of it may be on its way to the disk.
            answer = _PreparedReceipt(self._connection, correlation, read_only=True)
            self._broker.settle_behind(answer)

    def _pull(self, pull: openwire.MessagePull, receipt: Receipt | None) -> None:
        consumer = self._connection.consumers.get(pull.consumer_id)
        if consumer is not None:
            self._broker.pull(consumer, pull.timeout)
        self._answer(pull, receipt)

    def _control_consumer(self, control: openwire.ConsumerControl, receipt: Receipt | None) -> None:
        consumer = self._connection.consumers.get(control.consumer_id)
        if consumer is not None and control.close:
            self._broker.subscriptions.unsubscribe(consumer, DELIVERED_UNKNOWN)
        elif consumer is not None:
            self._broker.resize(consumer, control.prefetch)
        self._answer(control, receipt)

    def _shut_down(self, info: openwire.ShutdownInfo, receipt: Receipt | None) -> None:
        self._broker.disconnect(self._connection)
        self._progress.become("end")


class _PreparedReceipt:
    """Answers a prepare request when the transaction is on disk; read only: needs no outcome."""

    __slots__ = ("_connection", "_correlation", "_read_only")

    def __init__(self, connection: Connection, correlation: int, read_only: bool = False) -> None:
        self._connection = connection
        self._correlation = correlation
        self._read_only = read_only

    def settle(self) -> None:
        self._connection.put(Prepared(self._correlation, self._read_only))


_HANDLERS: dict[type[openwire.BaseCommand], _Handler] = {
    openwire.ConnectionInfo: Commands._connect,
    openwire.SessionInfo: Commands._answer,
    openwire.ProducerInfo: Commands._add_producer,
    openwire.ConsumerInfo: Commands._add_consumer,
    openwire.RemoveInfo: Commands._remove,
    openwire.DestinationInfo: Commands._manage_destination,
    openwire.RemoveSubscriptionInfo: Commands._forget_subscription,
    openwire.TransactionInfo: Commands._transact,
    openwire.MessagePull: Commands._pull,
    openwire.ConsumerControl: Commands._control_consumer,
    openwire.ShutdownInfo: Commands._shut_down,
    openwire.KeepAliveInfo: Commands._answer,
    openwire.FlushCommand: Commands._answer,
    openwire.ControlCommand: Commands._answer,
    openwire.ConnectionControl: Commands._answer,
    openwire.ConnectionError: Commands._answer,
    openwire.BrokerInfo: Commands._introduce,
    openwire.BrokerSubscriptionInfo: Commands._learn_subscriptions,
    openwire.MessageDispatchNotification: Commands._answer,
}
