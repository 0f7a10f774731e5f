"""Loads of the broker in lock step, by frames that are made beforehand.

Every run asks the same of the broker, and the client costs little. What carries the frames is a
`Wire` of whoever measures: a socket, or a session in the same process.
"""

import socket
from collections.abc import Callable
from typing import Protocol

from lockkeeper.message import openwire
from lockkeeper.message.destination import Destination, queue, topic
from lockkeeper.message.ids import LocalTransactionId, MessageId, ProducerId
from lockkeeper.message.openwire import AckType, ConsumerId, TransactionOperation
from lockkeeper.protocols.openwire.frames import framed

CODEC = openwire.codec_for(12, stack_traces=False)
CONTENT = (1024).to_bytes(4, "big") + bytes(1024)
# What stands for a number that is filled in at each use, and is found nowhere else in a frame.
NUMBER, SEQUENCE, UNIT = (bytes([each]) * 8 for each in (0x51, 0x52, 0x53))
# The two numbers of a message's id, which stand side by side.
NUMBERS = NUMBER + SEQUENCE
TRANSACTION, WINDOW, CROWD, LISTENERS = 100, 50, 8, 10
ANSWER, DISPATCH, REFUSAL = (
    CODEC.encode(each())[0]
    for each in (openwire.Response, openwire.MessageDispatch, openwire.ExceptionResponse)
)


def made(command: openwire.Structure) -> bytes:
    return framed(CODEC.encode(command))


def number_of(field: bytes) -> int:
    return int.from_bytes(field, "big")


class Carrier(Protocol):
    """Something that carries bytes to the broker and back."""

    def write(self, data: bytes) -> None:
        """Send bytes."""

    def read(self) -> bytes:
        """Return what has come, after waiting for it; nothing at the end of the connection."""

    def close(self) -> None:
        """Let go of the connection."""


class Socket:
    """A connection over loopback, to a broker at *port* that is waited for *seconds* at most."""

    def __init__(self, port: int, seconds: float) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), seconds)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.write, self.close = self._socket.sendall, self._socket.close

    def read(self) -> bytes:
        """Return what has come."""
        return self._socket.recv(1 << 20)


class Wire:
    """One connection, with one producer or one consumer.

    What it consumes comes from *sender*; Lockkeeper knows messages by their numbers alone.
    """

    def __init__(
        self, carrier: Carrier, name: str, destination: Destination, sender: str | None = None
    ) -> None:
        self.name, self.destination = name, destination
        self._sender = ProducerId(sender or name, 1, 1)
        self.write, self.close = carrier.write, carrier.close
        self._read = carrier.read
        self._rest = b""
        self._kept: dict[int, list[bytes]] = {}
        self._numbers_at = 0
        self._identity = openwire.ConnectionId(name)
        self._transaction_id = LocalTransactionId(name, number_of(UNIT))
        info = openwire.ConnectionInfo(connection_id=self._identity, client_id=name)
        self.write(framed(openwire.encode(openwire.WireFormatInfo(version=12))) + made(info))

    def read(self, kind: int, count: int) -> list[bytes]:
        """Return the next *count* frames of a kind; others are kept for whoever asks for them."""
        kept = self._kept.setdefault(kind, [])
        while len(kept) < count:
            received = self._read()
            if not received:
                raise RuntimeError("the broker ended the connection")
            data, at = self._rest + received, 0
            while len(data) - at >= 4:
                end = at + 4 + number_of(data[at : at + 4])
                if end > len(data):
                    break
                if data[at + 4] == REFUSAL:
                    raise RuntimeError(f"the broker refused: {CODEC.decode(data[at + 4 : end])[0]}")
                self._kept.setdefault(data[at + 4], []).append(data[at + 4 : end])
                at = end
            self._rest = data[at:]
        self._kept[kind] = kept[count:]
        return kept[:count]

    def enter(self) -> "Wire":
        """Name the session and the producer, which ActiveMQ wants to know before it is used."""
        session = openwire.SessionId(self.name, 1)
        producer = ProducerId(self.name, 1, 1)
        self.write(made(openwire.SessionInfo(session_id=session)))
        self.write(made(openwire.ProducerInfo(producer_id=producer)))
        return self

    # Producers

    def message(self, persistent: bool, answered: bool, in_transaction: bool = False) -> bytes:
        """Return the frame of a message with NUMBER, perhaps in UNIT."""
        producer = ProducerId(self.name, 1, 1)
        return made(
            openwire.ActiveMQTextMessage(
                command_id=1,
                response_required=answered,
                producer_id=producer,
                destination=self.destination,
                transaction_id=self._transaction_id if in_transaction else None,
                message_id=MessageId(producer, number_of(NUMBER)),
                content=CONTENT,
                persistent=persistent,
                timestamp=1,
                priority=4,
            )
        )

    def outcome(self, operation: TransactionOperation) -> bytes:
        """Return the frame that begins UNIT, or commits it and is answered."""
        return made(
            openwire.TransactionInfo(
                command_id=1,
                response_required=operation != TransactionOperation.BEGIN,
                connection_id=self._identity,
                transaction_id=self._transaction_id,
                type=operation,
            )
        )

    # Consumers

    def consume(self, prefetch: int = 30_000) -> "Wire":
        """Begin to receive."""
        info = openwire.ConsumerInfo(
            command_id=1,
            response_required=True,
            consumer_id=ConsumerId(self.name, 1, 1),
            destination=self.destination,
            prefetch_size=prefetch,
        )
        self.write(made(info))
        self.read(ANSWER, 1)
        return self

    def stop(self) -> None:
        """Stop receiving; everything acknowledged before has its effect."""
        identity = ConsumerId(self.name, 1, 1)
        self.write(
            made(openwire.RemoveInfo(command_id=1, response_required=True, object_id=identity))
        )
        self.read(ANSWER, 1)

    def acknowledgement(self, count: int = 1, in_transaction: bool = False) -> bytes:
        """Return the frame for *count* messages up to NUMBERS, perhaps in UNIT."""
        last = MessageId(self._sender, number_of(NUMBER), number_of(SEQUENCE))
        return made(
            openwire.MessageAck(
                destination=self.destination,
                consumer_id=ConsumerId(self.name, 1, 1),
                transaction_id=self._transaction_id if in_transaction else None,
                ack_type=AckType.STANDARD,
                message_count=count,
                last_message_id=last,
            )
        )

    def take(self, count: int) -> list[bytes]:
        """Return the numbers of the next *count* messages, to be put in the place of NUMBERS."""
        frames = self.read(DISPATCH, count)
        if not self._numbers_at:
            dispatch = CODEC.decode(frames[0])[0]
            assert isinstance(dispatch, openwire.MessageDispatch) and dispatch.message is not None
            identity = dispatch.message.message_id
            assert identity is not None
            told = identity.producer_sequence.to_bytes(8, "big")
            told += identity.broker_sequence.to_bytes(8, "big")
            # All messages have ids of the same length.
            self._numbers_at = frames[0].index(told)
        return [frame[self._numbers_at : self._numbers_at + len(NUMBERS)] for frame in frames]

    def take_and_acknowledge(self, count: int) -> None:
        """Acknowledge the next *count* messages one by one, as a listener does."""
        acknowledgement = self.acknowledgement()
        self.write(b"".join(acknowledgement.replace(NUMBERS, each) for each in self.take(count)))


Round = Callable[[], int]
"""A few messages through the broker; returns how many."""


class Load:
    """The clients of one scenario at one broker."""

    def __init__(self, connect: Callable[[], Carrier], scenario: str) -> None:
        self._connect, self._scenario = connect, scenario
        self._wires: list[Wire] = []
        self._count = 0
        self.prepare: Callable[[], None] = lambda: None
        self.run: Round = getattr(self, scenario)()

    def close(self) -> None:
        """Let go of all connections."""
        for wire in self._wires:
            wire.close()

    def _wire(self, destination: Destination) -> Wire:
        name = f"ID:cost-{self._scenario}-{len(self._wires):02d}"
        self._wires.append(Wire(self._connect(), name, destination))
        return self._wires[-1]

    def _queue(self) -> Destination:
        return queue(f"COST.{self._scenario}")

    def _frames(self, frame: bytes, count: int) -> bytes:
        first, self._count = self._count + 1, self._count + count
        numbers = range(first, first + count)
        return b"".join(frame.replace(NUMBER, each.to_bytes(8, "big")) for each in numbers)

    def answered(self) -> Round:
        """Persistent, one after the other: sent, answered, received, acknowledged."""
        consumer = self._wire(self._queue()).consume()
        producer = self._wire(self._queue())
        message = producer.message(persistent=True, answered=True)

        def run() -> int:
            for _ in range(WINDOW):
                producer.write(self._frames(message, 1))
                producer.read(ANSWER, 1)
                consumer.take_and_acknowledge(1)
            return WINDOW

        return run

    def crowd(self) -> Round:
        """Persistent, several producers at once, and several consumers."""
        consumers = [self._wire(self._queue()).consume() for _ in range(CROWD)]
        producers = [self._wire(self._queue()) for _ in range(CROWD)]
        messages = [each.message(persistent=True, answered=True) for each in producers]

        def run() -> int:
            for _ in range(WINDOW // CROWD):
                for producer, message in zip(producers, messages, strict=True):
                    producer.write(self._frames(message, 1))
                for producer in producers:
                    producer.read(ANSWER, 1)
                for consumer in consumers:
                    # Strict turns: each of them has got one.
                    consumer.take_and_acknowledge(1)
            return WINDOW // CROWD * CROWD

        return run

    def transacted(self) -> Round:
        """Persistent, sent and consumed in transactions of 100."""
        consumer = self._wire(self._queue()).consume()
        producer = self._wire(self._queue())
        message = producer.message(persistent=True, answered=False, in_transaction=True)
        acknowledgement = consumer.acknowledgement(TRANSACTION, in_transaction=True)
        begin, commit = TransactionOperation.BEGIN, TransactionOperation.COMMIT_ONE_PHASE

        def run() -> int:
            unit = (self._count + 1).to_bytes(8, "big")
            sent = self._frames(message, TRANSACTION)
            producer.write(
                (producer.outcome(begin) + sent + producer.outcome(commit)).replace(UNIT, unit)
            )
            producer.read(ANSWER, 1)
            taken = acknowledgement.replace(NUMBERS, consumer.take(TRANSACTION)[-1])
            consumer.write(
                (consumer.outcome(begin) + taken + consumer.outcome(commit)).replace(UNIT, unit)
            )
            consumer.read(ANSWER, 1)
            return TRANSACTION

        return run

    def volatile(self) -> Round:
        """Not persistent, one producer and one consumer."""
        return self._unanswered(self._queue(), 1)

    def topic(self) -> Round:
        """Not persistent, to ten consumers of a topic; counted are deliveries."""
        return self._unanswered(topic("COST.topic"), LISTENERS)

    def _unanswered(self, destination: Destination, listeners: int) -> Round:
        consumers = [self._wire(destination).consume() for _ in range(listeners)]
        producer = self._wire(destination)
        message = producer.message(persistent=False, answered=False)

        def run() -> int:
            producer.write(self._frames(message, WINDOW))
            for consumer in consumers:
                consumer.take_and_acknowledge(WINDOW)
            return WINDOW * listeners

        return run

    def drained(self) -> Round:
        """A backlog is emptied; filling it is not counted."""
        consumer, producer = self._wire(self._queue()), self._wire(self._queue())
        message = producer.message(persistent=True, answered=True)
        waiting = 10 * WINDOW

        def prepare() -> None:
            producer.write(self._frames(message, waiting))
            producer.read(ANSWER, waiting)

        def run() -> int:
            consumer.consume(prefetch=WINDOW)
            for _ in range(waiting // WINDOW):
                consumer.take_and_acknowledge(WINDOW)
            consumer.stop()
            return waiting

        self.prepare = prepare
        return run


SCENARIOS = ("answered", "crowd", "transacted", "volatile", "topic", "drained")
