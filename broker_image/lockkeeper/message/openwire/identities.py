"""Ids and destinations: OpenWire types 100 to 124 (openwire.md section 6)."""

from functools import partial

from lockkeeper.message.destination import Destination, Kind
from lockkeeper.message.ids import LocalTransactionId, MessageId, ProducerId, XATransactionId
from lockkeeper.message.openwire.structure import (
    DataStructure,
    Field,
    Int64,
    Layout,
    RequiredText,
    Wire,
    identity,
    register,
    taker,
)

SESSION_OF_CONNECTION = -1
"""The session number of a connection's own advisory consumer; it is never announced."""


@identity(120)
class ConnectionId(DataStructure):
    """A connection, by the text its client chose."""

    value: RequiredText = ""

    def __str__(self) -> str:
        """Return the text itself."""
        return self.value


@identity(121)
class SessionId(DataStructure):
    """A session: its connection and its number there."""

    connection_id: RequiredText = ""
    value: Int64 = 0

    def __str__(self) -> str:
        """Return the text form `connectionId:value`."""
        return f"{self.connection_id}:{self.value}"


@identity(122)
class ConsumerId(DataStructure):
    """A consumer: its connection, session and number."""

    connection_id: RequiredText = ""
    session_id: Int64 = 0
    value: Int64 = 0

    def __str__(self) -> str:
        """Return the text form `connectionId:sessionId:value`."""
        return f"{self.connection_id}:{self.session_id}:{self.value}"


@identity(124)
class BrokerId(DataStructure):
    """A broker, by the text it chose."""

    value: RequiredText = ""

    def __str__(self) -> str:
        """Return the text itself."""
        return self.value


def _message_id(
    text_view: str | None, producer_id: ProducerId | None, sequence: int, broker_sequence: int
) -> MessageId:
    return MessageId(producer_id, sequence, broker_sequence, text_view)


def _local_transaction_id(value: int, connection: ConnectionId | None) -> LocalTransactionId:
    return LocalTransactionId("" if connection is None else connection.value, value)


def _take_local_transaction_id(
    transaction: LocalTransactionId,
) -> tuple[int, ConnectionId | None]:
    connection = transaction.connection_id
    return transaction.value, ConnectionId(connection) if connection else None


_DESTINATION_NAMES = ("ActiveMQQueue", "ActiveMQTopic", "ActiveMQTempQueue", "ActiveMQTempTopic")
for _kind, _name in zip(Kind, _DESTINATION_NAMES, strict=True):
    register(
        Layout(
            100 + _kind,
            _name,
            Destination,
            (Field("name", Wire.REQUIRED_TEXT),),
            partial(Destination, _kind),
            taker("name"),
        )
    )

register(
    Layout(
        110,
        "MessageId",
        MessageId,
        (
            Field("text_view", Wire.TEXT, since=10),
            Field("producer_id", Wire.CACHED, (ProducerId,)),
            Field("producer_sequence", Wire.INT64),
            Field("broker_sequence", Wire.INT64),
        ),
        _message_id,
        taker("text_view", "producer_id", "producer_sequence", "broker_sequence"),
    )
)
register(
    Layout(
        111,
        "LocalTransactionId",
        LocalTransactionId,
        (
            Field("value", Wire.INT64),
            Field("connection_id", Wire.CACHED, (ConnectionId,)),
        ),
        _local_transaction_id,
        _take_local_transaction_id,
    )
)
register(
    Layout(
        112,
        "XATransactionId",
        XATransactionId,
        (
            Field("format_id", Wire.INT32),
            Field("global_transaction_id", Wire.REQUIRED_OCTETS),
            Field("branch_qualifier", Wire.REQUIRED_OCTETS),
        ),
        XATransactionId,
        taker("format_id", "global_transaction_id", "branch_qualifier"),
    )
)
register(
    Layout(
        123,
        "ProducerId",
        ProducerId,
        (
            Field("connection_id", Wire.REQUIRED_TEXT),
            Field("value", Wire.INT64),
            Field("session_id", Wire.INT64),
        ),
        ProducerId,
        taker("connection_id", "value", "session_id"),
    )
)
