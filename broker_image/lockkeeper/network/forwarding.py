"""Messages on their way to the other broker: how they are sent, and which are not confirmed yet."""

import itertools
from collections.abc import Sequence
from typing import NamedTuple

from lockkeeper.broker.subscriptions.network import may_pass
from lockkeeper.message import openwire
from lockkeeper.message.bodies import compressed_content
from lockkeeper.message.broker_path import (
    broker_path,
    locate_path,
    names_of,
    path_wire,
    read_path,
)
from lockkeeper.message.ids import ProducerId
from lockkeeper.message.layout import (
    BLOB_MESSAGE,
    BROKER_OUT_TIME_AT,
    Lead,
    locate_destinations,
    skip_nested,
)
from lockkeeper.message.message import Message
from lockkeeper.message.openwire import BrokerId, Codec
from lockkeeper.network.demand import Demand
from lockkeeper.network.settings import BridgeSettings
from lockkeeper.protocols.openwire.codec import SPLICED_VERSION_MIN
from lockkeeper.protocols.openwire.frames import Piece, framed
from lockkeeper.store.base import Reference

_REDELIVERIES_BYTES = 4
_ABSENT = b"\x00"


class Opening(NamedTuple):
    """Parts of a forwarded message before its sequence numbers, for all that begin alike.

    `transaction` are the bytes of what becomes the originalTransactionId if there is none.
    """

    lead: Lead
    prefix: bytes
    transaction: bytes


class Pending(NamedTuple):
    """A forwarded message that is not confirmed since then (ms since the epoch)."""

    demand: Demand
    sequence: int
    since: int


class Forwarder:
    """Sends messages of our consumers to the other broker, as a producer there.

    A message that has to be confirmed is `pending` by the number of its command; `settled` has
    those that are done with, by their demand. `enqueued`, `dequeued` and `bytes` count them since
    the bridge began (ActiveMQ's enqueueCounter and dequeueCounter), `replayed` those that went back
    to a broker that they had left.
    """

    def __init__(
        self,
        broker_id: str,
        peer_id: str,
        producer: ProducerId,
        codec: Codec,
        settings: BridgeSettings,
    ) -> None:
        """*peer_id* is the other broker's."""
        self.numbers = itertools.count(1)
        self.pending: dict[int, Pending] = {}
        self.settled: dict[Demand, list[int]] = {}
        self.enqueued = self.dequeued = self.bytes = self.replayed = 0
        self._broker_id = broker_id
        self._peer_id = peer_id
        self._codec = codec
        self._compresses = settings.use_compression
        self._is_spliced = codec.version >= SPLICED_VERSION_MIN and not self._compresses
        self._always = settings.always_sync_send
        self._producer = producer
        self._producer_wire = b"\x01" + openwire.encode(producer)
        self._own_path = path_wire((broker_id,))
        self._opening: Opening | None = None

    def append(
        self, out: list[Piece], demand: Demand, references: Sequence[Reference], now: int
    ) -> None:
        """Append the frames of messages for a demand to *out*; *now* is their brokerOutTime."""
        route = demand.consumer.request.network if demand.consumer is not None else None
        for reference in references:
            message = reference.loaded
            self.enqueued += 1
            demand.outstanding += 1
            if (
                demand.subscription_name is not None
                and route is not None
                and not may_pass(route, broker_path(message.body))
            ):
                # A durable subscription collects it all the same; it ends here.
                self._settle(demand, message.sequence)
                continue
            number = next(self.numbers)
            is_confirmed = message.persistent or self._always
            body = self._forwarded(message, number, is_confirmed, reference.redeliveries, now)
            out.append(framed(body))
            self.bytes += len(body)
            if is_confirmed:
                self.pending[number] = Pending(demand, message.sequence, now)
            else:
                self._settle(demand, message.sequence)

    def lag(self, now: int) -> int:
        """Return for how many ms the oldest message of all has waited for its confirmation."""
        oldest = next(iter(self.pending.values()), None)
        return 0 if oldest is None else max(0, now - oldest.since)

    def confirmed(self, number: int) -> None:
        """Note that the other broker has a message."""
        pending = self.pending.pop(number, None)
        if pending is not None:
            self._settle(pending.demand, pending.sequence)

    def _settle(self, demand: Demand, sequence: int) -> None:
        self.dequeued += 1
        self.settled.setdefault(demand, []).append(sequence)

    def refused(self, number: int) -> Pending | None:
        """Return the message that the other broker has refused."""
        pending = self.pending.pop(number, None)
        if pending is not None:
            pending.demand.outstanding -= 1
        return pending

    def _forwarded(
        self, message: Message, number: int, is_confirmed: bool, redeliveries: int, now: int
    ) -> bytes:
        """Return a message as its next broker gets it: with us in its path, by our producer."""
        body = message.body
        at = locate_path(body, message.flags_at) if self._is_spliced else None
        if at is None or body[0] == BLOB_MESSAGE:
            return self._encoded(message, number, is_confirmed, redeliveries, now)
        opening = self._opening
        if opening is None or opening.lead is not message.lead:
            opening = self._opening = self._learn(message)
        sequence_at = message.lead.sequence_at
        numbers_end = sequence_at + 16
        original = _ABSENT
        rest = numbers_end + 1
        if body[numbers_end]:
            rest = skip_nested(body, numbers_end)
            original = body[numbers_end:rest]
        elif opening.transaction:
            original = opening.transaction
        path, end = self._path_from(body, at)
        return b"".join(
            (
                body[:1],
                number.to_bytes(4, "big"),
                b"\x01" if is_confirmed else b"\x00",
                opening.prefix,
                body[sequence_at:numbers_end],
                original,
                body[rest : at - _REDELIVERIES_BYTES],
                redeliveries.to_bytes(_REDELIVERIES_BYTES, "big"),
                path,
                body[end:BROKER_OUT_TIME_AT],
                now.to_bytes(8, "big"),
                body[-1:],
            )
        )

    def _path_from(self, body: bytes, at: int) -> tuple[bytes, int]:
        if not body[at]:
            return self._own_path, at + 1
        path, end = read_path(body, at)
        return path_wire(self._lengthened(path)), end

    def _lengthened(self, path: tuple[str, ...]) -> tuple[str, ...]:
        """Return the brokers that a message has left once it is forwarded."""
        self.replayed += self._peer_id in path
        return (*path, self._broker_id)

    def _learn(self, message: Message) -> Opening:
        """Work out how messages are forwarded that begin like this one."""
        body, lead = message.body, message.lead
        where, original_where = locate_destinations(body)
        transaction = body[where.stop : original_where.start]
        prefix = b"".join(
            (
                self._producer_wire,
                message.destination.wire,
                _ABSENT,
                body[original_where],
                body[original_where.stop : lead.sequence_at],
            )
        )
        return Opening(lead, prefix, b"" if transaction == _ABSENT else transaction)

    def _encoded(
        self, message: Message, number: int, is_confirmed: bool, redeliveries: int, now: int
    ) -> bytes:
        """Do what `_forwarded` does field by field: for other versions, for rare messages."""
        fields, _ = openwire.decode(message.body)
        assert isinstance(fields, openwire.Message)
        fields.command_id, fields.response_required = number, is_confirmed
        fields.producer_id = self._producer
        fields.destination = message.destination
        if fields.original_transaction_id is None:
            fields.original_transaction_id = fields.transaction_id
        fields.transaction_id = None
        fields.redelivery_counter = redeliveries
        path = self._lengthened(names_of(fields.broker_path))
        fields.broker_path = tuple(BrokerId(each) for each in path)
        fields.broker_out_time = now
        if self._compresses and not fields.compressed and fields.content is not None:
            fields.content = compressed_content(message.body[0], fields.content)
            fields.compressed = True
        return self._codec.encode(fields)
