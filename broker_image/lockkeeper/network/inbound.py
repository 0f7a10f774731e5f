"""Messages that another broker brings, and its consumers of our advisories."""

from lockkeeper.broker.advisories.names import is_advisory
from lockkeeper.broker.connections import Connection
from lockkeeper.broker.core import Broker
from lockkeeper.broker.errors import (
    BrokerError,
    CircularForwardingError,
    DestinationGoneError,
    InternalError,
    InvalidDestinationError,
    InvalidRequestError,
    InvalidScheduleError,
    ResourceAllocationError,
    TooLargeError,
    UnanswerableError,
    internal_error,
)
from lockkeeper.broker.network_audit import NetworkAudit
from lockkeeper.broker.outputs import Reply
from lockkeeper.broker.refused import bury_refused
from lockkeeper.message import openwire
from lockkeeper.message.broker_path import broker_path
from lockkeeper.message.layout import RESPONSE_REQUIRED_AT
from lockkeeper.message.message import Message
from lockkeeper.message.reader import MessageReader
from lockkeeper.message.rewrite import decoded, encoded
from lockkeeper.message.text import encode_text
from lockkeeper.protocols.openwire.acknowledgements import AckReader
from lockkeeper.protocols.openwire.agreement import Agreement
from lockkeeper.protocols.openwire.commands import Commands
from lockkeeper.protocols.openwire.phases import Progress
from lockkeeper.protocols.settings import ListenerSettings
from lockkeeper.store.base import Receipt, StoreFullError

# What is refused so is refused whenever it comes.
_NEVER_TAKEN = (
    CircularForwardingError,
    InternalError,
    InvalidRequestError,
    InvalidScheduleError,
    TooLargeError,
    UnanswerableError,
)
# The peer's connection is ours already; what it says of its own is for our books alone.
_OF_ITS_CONNECTION = (
    openwire.BrokerInfo,
    openwire.ConnectionInfo,
)


class Inbound:
    """Takes what the peer sends for its *connection*; the *audit* is that of this bridge alone."""

    def __init__(
        self,
        broker: Broker,
        audit: NetworkAudit,
        wire: ListenerSettings,
        connection: Connection,
        agreement: Agreement,
    ) -> None:
        self._came = 0
        self._broker = broker
        self._own_id = encode_text(broker.broker_id)
        self._audit = audit
        self._connection = connection
        self._agreement = agreement
        self._reader = MessageReader()
        self._acks = AckReader(broker, connection)
        progress = Progress()
        for event in ("agree", "admit"):
            progress.become(event)
        self._commands = Commands(broker, wire, connection, progress)

    @property
    def taken(self) -> int:
        """Count of the messages that were taken, those included that had come before.

        What waits for room is not, nor what waited when the connection ended: it comes again.
        """
        return self._came - self._connection.blocked_sends

    @property
    def duplicates(self) -> int:
        """Count of the messages that had come before."""
        return self._audit.duplicates

    def receive_message(self, data: bytes, start: int, end: int) -> openwire.Message | None:
        """Take a message; returns one that is an advisory for the bridge instead."""
        if not self._agreement.spliced:
            fields, _ = self._agreement.codec.decode(data, start, end)
            data = openwire.encode(fields)
            start, end = 0, len(data)
        broker = self._broker
        in_time = broker.now.to_bytes(8, "big")
        message = self._reader.receive(data, start, end, next(broker.sequences), in_time)
        if is_advisory(message.destination):
            return decoded(message)
        self._take(self._renamed(message))
        return None

    def _renamed(self, message: Message) -> Message:
        """Return a queue's message as it is, or a copy if it has been here before.

        Its first stay may not have ended yet, since no confirmation has come. In the journal both
        go by their ids, so the end of the first one would be that of both. One with an id that was
        given here need not say that it was: it may come from a copy of the journal.
        """
        if not message.persistent or not message.destination.is_queue:
            return message
        # Most have not: bytes are looked through faster than a path is read.
        if self._own_id not in message.body:
            return message
        was_here = self._broker.broker_id in broker_path(message.body)
        if not was_here and not self._audit.is_own(message):
            return message
        fields = decoded(message)
        fields.message_id = self._audit.own_id(message, message.sequence)
        return encoded(fields, message.sequence)

    def _take(self, message: Message) -> None:
        body = message.body
        receipt: Receipt | None = None
        if body[RESPONSE_REQUIRED_AT]:
            receipt = Reply(self._connection, int.from_bytes(body[1:5], "big", signed=True))
        self._send(message, receipt)
        self._came += 1

    def _send(self, message: Message, receipt: Receipt | None) -> None:
        try:
            self._broker.send(self._connection, message, receipt)
        except BrokerError as refusal:
            self.refuse(message, receipt, refusal)
        except StoreFullError as full:
            self.refuse(message, receipt, ResourceAllocationError(str(full)))
        except Exception as error:
            self._broker.containment.note_error("command", self._connection.address, error)
            self.refuse(message, receipt, internal_error(error))

    def refuse(self, message: Message, receipt: Receipt | None, error: BrokerError) -> None:
        """Refuse a message that could not be taken, at once or after it had waited for room.

        One that never can be is a dead letter; one for a temporary destination that is gone is of
        no great account unless somebody waits for the answer.
        """
        connection = self._connection
        if isinstance(error, _NEVER_TAKEN):
            bury_refused(self._broker, self._audit, connection, message, error, receipt)
            return
        if isinstance(error, InvalidDestinationError) and message.destination.is_temporary:
            if receipt is not None:
                connection.refuse(receipt, DestinationGoneError(str(message.destination)))
            return
        self._came -= 1
        connection.refuse(receipt, error)

    def receive_acknowledgement(self, data: bytes, start: int, end: int) -> None:
        """Take the acknowledgement of advisories. Raises BrokerError."""
        ack, _ = self._agreement.codec.decode(data, start, end)
        assert isinstance(ack, openwire.MessageAck)
        if ack.consumer_id in self._connection.consumers:
            self._acks.acknowledge(ack, self._receipt(ack))

    def carry_out(self, command: openwire.BaseCommand) -> None:
        """Carry out any other command as a client's. Raises BrokerError when nobody waits."""
        receipt = self._receipt(command)
        if isinstance(command, (*_OF_ITS_CONNECTION, openwire.Response)):
            if receipt is not None:
                receipt.settle()
            return
        try:
            self._commands.carry_out(command, receipt)
        except BrokerError as error:
            if receipt is None:
                raise
            self._connection.refuse(receipt, error)

    def _receipt(self, command: openwire.BaseCommand) -> Reply | None:
        return Reply(self._connection, command.command_id) if command.response_required else None
