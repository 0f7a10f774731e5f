"""OpenWire by hand: a socket, commands out, commands in, and no client in between.

What a client library would hide is decided by the test: when an answer is awaited, what an
acknowledgement says, and what is known at the moment the broker dies.
"""

import itertools
import select
import socket
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from lockkeeper.message.destination import Destination
from lockkeeper.message.ids import MessageId, ProducerId, TransactionId, XATransactionId
from lockkeeper.message.openwire import (
    AckType,
    ActiveMQBytesMessage,
    BaseCommand,
    ConnectionId,
    ConnectionInfo,
    ConsumerId,
    ConsumerInfo,
    DataArrayResponse,
    ExceptionResponse,
    KeepAliveInfo,
    Message,
    MessageAck,
    MessageDispatch,
    ProducerInfo,
    RemoveInfo,
    Response,
    SessionInfo,
    Structure,
    TransactionInfo,
    TransactionOperation,
    WireFormatInfo,
    codec_for,
)
from lockkeeper.message.openwire import SessionId as WireSessionId
from lockkeeper.protocols.openwire.codec import offer
from lockkeeper.protocols.settings import ListenerSettings

CODEC = codec_for(12, False)
ANSWER_SECONDS_MAX = 30
RECEIVE_BYTES = 1 << 18
SESSION = 1
LARGE_PREFETCH = 100_000
_NAMES = itertools.count(1)


class RefusedError(Exception):
    """The broker answered with an exception: its class and what it says."""


class Wire:
    """One connection with one session; raises OSError when the broker is gone.

    `dispatched` keeps what consumers were sent until `next_dispatch` takes it, `answers` the
    responses by the number of their command.
    """

    def __init__(self, port: int, client_id: str | None = None) -> None:
        self.dispatched: deque[MessageDispatch] = deque()
        self.answers: dict[int, Response] = {}
        self.name = f"ID:wire-{time.time_ns()}-{next(_NAMES)}:1"
        self._numbers = itertools.count(1)
        self._ids = itertools.count(1)
        self._received = bytearray()
        self._socket = socket.create_connection(("127.0.0.1", port), ANSWER_SECONDS_MAX)
        try:
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._write(offer(ListenerSettings(inactivity_duration=0)))
            connection_id = ConnectionId(self.name)
            self.request(
                ConnectionInfo(connection_id=connection_id, client_id=client_id or self.name)
            )
            self.request(SessionInfo(session_id=WireSessionId(self.name, SESSION)))
        except BaseException:
            self.close()
            raise

    # Commands

    def tell(self, command: BaseCommand) -> None:
        """Send a command that needs no answer."""
        self._write(replace(command, command_id=next(self._numbers)))

    def ask(self, command: BaseCommand) -> int:
        """Send a command that is to be answered; return its number."""
        number = next(self._numbers)
        self._write(replace(command, command_id=number, response_required=True))
        return number

    def request(self, command: BaseCommand) -> Response:
        """Send a command and wait for its answer. Raises RefusedError."""
        number = self.ask(command)
        deadline = time.monotonic() + ANSWER_SECONDS_MAX
        while number not in self.answers:
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError(f"no answer to {type(command).__name__}")
            self.receive(left)
        answer = self.answers.pop(number)
        if isinstance(answer, ExceptionResponse):
            thrown = answer.exception
            assert thrown is not None
            raise RefusedError(f"{thrown.class_name}: {thrown.message}")
        return answer

    def _write(self, command: Structure) -> None:
        body = CODEC.encode(command)
        self._socket.sendall(len(body).to_bytes(4, "big") + body)

    # What comes back

    def receive(self, seconds: float) -> bool:
        """Take in what arrives within *seconds*; returns whether anything did."""
        if not select.select([self._socket], [], [], seconds)[0]:
            return False
        data = self._socket.recv(RECEIVE_BYTES)
        if not data:
            raise ConnectionResetError("the broker closed the connection")
        self._received += data
        for frame in self._frames():
            self._take(frame)
        return True

    def _frames(self) -> Iterator[bytes]:
        data, position = bytes(self._received), 0
        while len(data) - position >= 4:
            end = position + 4 + int.from_bytes(data[position : position + 4], "big")
            if end > len(data):
                break
            yield data[position + 4 : end]
            position = end
        del self._received[:position]

    def _take(self, frame: bytes) -> None:
        command, _ = CODEC.decode(frame)
        if isinstance(command, MessageDispatch):
            self.dispatched.append(command)
        elif isinstance(command, Response):
            self.answers[command.correlation_id] = command
        elif isinstance(command, WireFormatInfo):
            assert command.version >= CODEC.version, "the broker is too old for this"
        elif isinstance(command, KeepAliveInfo) and command.response_required:
            self.tell(KeepAliveInfo())

    def next_dispatch(self, seconds: float = ANSWER_SECONDS_MAX) -> MessageDispatch | None:
        """Return what a consumer is sent next; None when nothing comes in time."""
        deadline = time.monotonic() + seconds
        while not self.dispatched:
            left = deadline - time.monotonic()
            if left <= 0 or not self.receive(left):
                return None
        return self.dispatched.popleft()

    def leave(self) -> None:
        """Say good-bye: when this returns, the broker has forgotten the connection."""
        self.request(RemoveInfo(object_id=ConnectionId(self.name)))
        self.close()

    def close(self) -> None:
        """Hang up without a word, as a client does that dies."""
        self._socket.close()

    def __enter__(self) -> "Wire":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Shorthand

    def producer(self) -> ProducerId:
        """Open a producer for any destination."""
        producer_id = ProducerId(self.name, next(self._ids), SESSION)
        self.request(ProducerInfo(producer_id=producer_id))
        return producer_id

    def consumer(
        self, destination: Destination, prefetch: int = LARGE_PREFETCH, **options: Any
    ) -> ConsumerId:
        """Open a consumer; *options* are other fields of its ConsumerInfo."""
        consumer_id = ConsumerId(self.name, SESSION, next(self._ids))
        info = ConsumerInfo(
            consumer_id=consumer_id, destination=destination, prefetch_size=prefetch, **options
        )
        self.request(info)
        return consumer_id

    def browse(self, destination: Destination) -> list[Message]:
        """Return what a queue holds, in its order."""
        self.consumer(destination, browser=True)
        found: list[Message] = []
        while (dispatch := self.next_dispatch()) is not None:
            if dispatch.message is None:
                return found
            found.append(dispatch.message)
        raise TimeoutError(f"browsing {destination} came to no end")

    def in_doubt(self) -> list[XATransactionId]:
        """Return the prepared transactions that wait for their outcome (XA's recover)."""
        answer = self.request(self.transaction(None, TransactionOperation.RECOVER))
        assert isinstance(answer, DataArrayResponse)
        return [found for found in answer.data or () if isinstance(found, XATransactionId)]

    def transaction(
        self, identifier: TransactionId | None, operation: TransactionOperation
    ) -> TransactionInfo:
        """Return the command that begins or ends a transaction of this connection."""
        return TransactionInfo(
            connection_id=ConnectionId(self.name), transaction_id=identifier, type=operation
        )


def bytes_message(
    producer_id: ProducerId,
    sequence: int,
    destination: Destination,
    content: bytes,
    transaction_id: TransactionId | None = None,
) -> ActiveMQBytesMessage:
    """Return a persistent message, as a JMS client makes it."""
    return ActiveMQBytesMessage(
        producer_id=producer_id,
        destination=destination,
        transaction_id=transaction_id,
        message_id=MessageId(producer_id, sequence),
        persistent=True,
        timestamp=time.time_ns() // 1_000_000,
        content=content,
    )


def acknowledgement(
    dispatch: MessageDispatch,
    kind: AckType = AckType.INDIVIDUAL,
    transaction_id: TransactionId | None = None,
) -> MessageAck:
    """Return the acknowledgement of one dispatched message."""
    assert dispatch.message is not None
    return MessageAck(
        destination=dispatch.destination,
        transaction_id=transaction_id,
        consumer_id=dispatch.consumer_id,
        ack_type=kind,
        first_message_id=None if kind is AckType.INDIVIDUAL else dispatch.message.message_id,
        last_message_id=dispatch.message.message_id,
        message_count=1,
    )
