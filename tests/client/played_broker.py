"""A broker in memory for the client's core: strict, and cut off at any frame."""

from collections import deque
from dataclasses import dataclass, field, replace
from typing import Any

from lockkeeper.client.core.connection import ConnectionCore
from lockkeeper.client.core.delivery import DISPATCH, DispatchReader
from lockkeeper.message import openwire
from lockkeeper.message.ids import MessageId, ProducerId
from lockkeeper.message.openwire import AckType, TransactionOperation, codec_for


@dataclass
class Stored:
    """A message of the queue."""

    message: openwire.Message
    redeliveries: int = 0

    @property
    def sequence(self) -> int:
        assert self.message.message_id is not None
        return self.message.message_id.broker_sequence

    @property
    def key(self) -> str:
        return str(self.message.message_id)


@dataclass
class Subscriber:
    """A consumer as the broker has it, for as long as its link."""

    info: openwire.ConsumerInfo
    dispatched: list[Stored] = field(default_factory=list)
    extension: int = 0
    pulls: int = 0
    in_transaction: list[Stored] = field(default_factory=list)

    @property
    def credit(self) -> int:
        if not self.info.prefetch_size:
            return self.pulls
        return self.info.prefetch_size + self.extension - len(self.dispatched)


class PlayedBroker:
    """One queue, behind one link at a time; what it is told wrongly is an AssertionError."""

    def __init__(self, core: ConnectionCore, version: int = 12, counts: bool = True) -> None:
        """With *counts* a cut is a delivery of all that was dispatched, as in ActiveMQ."""
        self.queue: deque[Stored] = deque()
        self.dead: list[str] = []
        self.stored: list[str] = []
        self.acks: list[openwire.MessageAck] = []
        self._core = core
        self._step = int(counts)
        self._codec = codec_for(version, False)
        self._sequence = 0
        self._numbers: dict[Any, int] = {}
        self._forget()

    def _forget(self) -> None:
        self.subscribers: dict[Any, Subscriber] = {}
        self.made: set[Any] = set()
        """Producers and temporary destinations that there are."""
        self._transactions: dict[Any, list[Any]] = {}
        self._told: list[openwire.Structure] = []
        self._late: list[openwire.Structure] = []
        self._out: list[bytes] = []
        self._is_again = False

    # The link

    @property
    def is_linked(self) -> bool:
        return self._core.outbox.codec is not None

    def link(self) -> None:
        """Let the client connect."""
        self._forget()
        self._reader = DispatchReader(self._codec)
        self._core.link_made(self._codec, "played")

    def serve(self) -> None:
        """Take everything that the client says, and tell it everything."""
        self.take_frames(None)
        self.tell()

    def take_frames(self, count: int | None) -> None:
        """Take some of the frames that the client has sent; all with None."""
        outbox = self._core.outbox
        if outbox.frames:
            data = outbox.take_all()
            outbox.written(len(data))
            while data:
                end = 4 + int.from_bytes(data[:4], "big")
                self._out.append(data[4:end])
                data = data[end:]
        taken = self._out[:count]
        del self._out[: len(taken)]
        for frame in taken:
            self._handle(self._codec.decode(frame)[0])
        self._dispatch()

    def tell(self, count: int | None = None) -> None:
        """Tell the client what the broker has to say, some of it or all."""
        told = self._told[:count]
        del self._told[: len(told)]
        frames = [self._codec.encode(each) for each in told]
        self._core.receive(
            [
                self._reader.read(frame) if frame[0] == DISPATCH else self._codec.decode(frame)[0]
                for frame in frames
            ]
        )

    def cut(self) -> None:
        """Lose the link: what was dispatched and not acknowledged comes again."""
        for subscriber in self.subscribers.values():
            back = [*subscriber.in_transaction, *subscriber.dispatched]
            self._requeue(
                replace(each, redeliveries=each.redeliveries + self._step) for each in back
            )
        self._forget()
        self._core.link_lost(ConnectionResetError("cut"))

    def _requeue(self, stored: Any) -> None:
        self.queue.extendleft(reversed(list(stored)))
        ordered = sorted(self.queue, key=lambda each: each.sequence)
        self.queue = deque(ordered)

    # What the client says

    def _handle(self, command: openwire.Structure) -> None:
        match command:
            case openwire.ConnectionInfo():
                self._is_again = command.failover_reconnect
            case openwire.Message():
                self._receive(command)
            case openwire.ConsumerInfo():
                self.subscribers[command.consumer_id] = Subscriber(command)
            case openwire.MessagePull():
                self.subscribers[command.consumer_id].pulls = 1
            case openwire.MessageAck():
                self._acknowledge(command)
            case openwire.TransactionInfo():
                self._end(command)
            case openwire.RemoveInfo(object_id=openwire.ConsumerId() as gone):
                subscriber = self.subscribers.pop(gone)
                last, unknown = command.last_delivered_sequence, openwire.DELIVERED_UNKNOWN
                self._requeue(
                    replace(each, redeliveries=each.redeliveries + is_delivered)
                    for each in subscriber.dispatched
                    for is_delivered in [last == unknown or each.sequence <= last]
                )
            case openwire.ProducerInfo():
                self.made.add(command.producer_id)
            case openwire.RemoveInfo(object_id=ProducerId() as gone):
                self.made.remove(gone)
            case openwire.DestinationInfo(operation_type=openwire.DestinationOperation.ADD):
                self.made.add(command.destination)
            case openwire.DestinationInfo():
                self.made.remove(command.destination)
        if isinstance(command, openwire.BaseCommand) and command.response_required:
            # A new consumer may be sent messages before it is answered, as by ActiveMQ.
            told = self._late if isinstance(command, openwire.ConsumerInfo) else self._told
            told.append(openwire.Response(correlation_id=command.command_id))

    def _receive(self, message: openwire.Message) -> None:
        assert message.message_id is not None
        number = message.message_id.producer_sequence
        if self._is_again and number <= self._numbers.get(message.producer_id, 0):
            return
        if message.transaction_id is not None:
            self._transactions[message.transaction_id].append(message)
        else:
            self._store(message)

    def _store(self, message: openwire.Message) -> None:
        ids = message.message_id
        assert ids is not None and str(ids) not in self.stored, "stored twice"
        self._numbers[message.producer_id] = ids.producer_sequence
        self.stored.append(str(ids))
        self._sequence += 1
        known = MessageId(ids.producer_id, ids.producer_sequence, self._sequence)
        self.queue.append(Stored(replace(message, message_id=known, response_required=False)))

    def _acknowledge(self, ack: openwire.MessageAck) -> None:
        self.acks.append(ack)
        subscriber = self.subscribers[ack.consumer_id]
        keys = [each.key for each in subscriber.dispatched]
        last = keys.index(str(ack.last_message_id))
        if ack.ack_type == AckType.DELIVERED:
            subscriber.extension += ack.message_count
            assert subscriber.extension <= len(keys), "the same was reported twice"
            return
        first = last if ack.first_message_id is None else keys.index(str(ack.first_message_id))
        found = subscriber.dispatched[first : last + 1]
        assert len(found) == ack.message_count, "not the range that was dispatched"
        del subscriber.dispatched[first : last + 1]
        subscriber.extension = max(0, subscriber.extension - len(found))
        if ack.transaction_id is not None:
            subscriber.in_transaction += found
            self._transactions[ack.transaction_id].append(subscriber)
        elif ack.ack_type == AckType.POISON:
            self.dead += [each.key for each in found]

    def _end(self, info: openwire.TransactionInfo) -> None:
        if info.type == TransactionOperation.BEGIN:
            self._transactions[info.transaction_id] = []
            return
        parts = self._transactions.pop(info.transaction_id)
        for part in parts:
            if isinstance(part, Subscriber):
                found, part.in_transaction = part.in_transaction, []
                if info.type == TransactionOperation.ROLLBACK:
                    part.dispatched = found + part.dispatched
            elif info.type == TransactionOperation.COMMIT_ONE_PHASE:
                self._store(part)

    def _dispatch(self) -> None:
        for subscriber in self.subscribers.values():
            while self.queue and subscriber.credit > 0:
                stored = self.queue.popleft()
                subscriber.dispatched.append(stored)
                subscriber.pulls = 0
                message = replace(stored.message, redelivery_counter=stored.redeliveries)
                self._told.append(
                    openwire.MessageDispatch(
                        consumer_id=subscriber.info.consumer_id,
                        destination=stored.message.destination,
                        message=message,
                        redelivery_counter=stored.redeliveries,
                    )
                )
        self._told += self._late
        self._late.clear()
