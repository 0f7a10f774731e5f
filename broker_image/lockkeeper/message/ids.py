"""Ids of producers, messages and transactions, as OpenWire and KahaDB name them."""

import re
from dataclasses import dataclass

_XID = re.compile(r"XID:\[(-?\d+),globalId=((?:[0-9a-f]{2})*),branchId=((?:[0-9a-f]{2})*)\]")


@dataclass(frozen=True, slots=True)
class ProducerId:
    """A producer: its connection, session and number (OpenWire type 123)."""

    connection_id: str
    value: int
    session_id: int

    def __str__(self) -> str:
        """Return the text form `connectionId:sessionId:value`."""
        return f"{self.connection_id}:{self.session_id}:{self.value}"


@dataclass(frozen=True, slots=True)
class MessageId:
    """A message: its producer and the producer's sequence number (OpenWire type 110).

    `text_view`, when set, is shown instead (ids made by STOMP or AMQP, and of copies).
    """

    producer_id: ProducerId | None
    producer_sequence: int
    broker_sequence: int = 0
    text_view: str | None = None

    def __str__(self) -> str:
        """Return the JMSMessageID."""
        return self.producer_key if self.text_view is None else self.text_view

    @property
    def producer_key(self) -> str:
        """KahaDB's key of the message: producer and number, whatever its text is."""
        return f"{self.producer_id}:{self.producer_sequence}"


@dataclass(frozen=True, slots=True)
class LocalTransactionId:
    """A transaction of one connection (OpenWire type 111)."""

    connection_id: str
    value: int

    def __str__(self) -> str:
        """Return ActiveMQ's text form `TX:connectionId:value`."""
        return f"TX:{self.connection_id}:{self.value}"


@dataclass(frozen=True, slots=True)
class XATransactionId:
    """A branch of a distributed transaction (OpenWire type 112)."""

    format_id: int
    global_transaction_id: bytes
    branch_qualifier: bytes

    def __str__(self) -> str:
        """Return ActiveMQ's text form `XID:[formatId,globalId=hex,branchId=hex]`."""
        global_id, branch = self.global_transaction_id.hex(), self.branch_qualifier.hex()
        return f"XID:[{self.format_id},globalId={global_id},branchId={branch}]"


def parse_xid(text: str) -> XATransactionId:
    """Return the XA transaction of a text that `str` made of one. Raises ValueError."""
    match = _XID.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is no XID:[formatId,globalId=hex,branchId=hex]")
    return XATransactionId(int(match[1]), bytes.fromhex(match[2]), bytes.fromhex(match[3]))


TransactionId = LocalTransactionId | XATransactionId
