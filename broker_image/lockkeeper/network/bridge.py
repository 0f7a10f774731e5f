"""One end of a bridge: a session whose peer is another broker.

The end that dials introduces itself and consumes advisories of the peer; so it hears of consumers
there, and forwards what they want. With a duplex bridge the other end does the same, over the same
connection; otherwise it only takes what comes.
"""

import sys
from collections.abc import Sequence
from typing import Final, Protocol, cast

from lockkeeper.broker.bridging import begin_bridge
from lockkeeper.broker.connections import NetworkPeer
from lockkeeper.broker.core import Broker
from lockkeeper.broker.errors import BrokerError, internal_error
from lockkeeper.broker.network_audit import NetworkAudit
from lockkeeper.broker.outputs import (
    ConsumerClosed,
    Delivery,
    Disconnect,
    Output,
    WindowChanged,
)
from lockkeeper.message import openwire
from lockkeeper.message.errors import MalformedMessageError
from lockkeeper.message.ids import ProducerId
from lockkeeper.message.layout import MESSAGE_TYPES
from lockkeeper.network.demand import Demand
from lockkeeper.network.demand_book import DemandBook
from lockkeeper.network.durable_sync import VERSION_MIN, subscription_info
from lockkeeper.network.forwarding import Forwarder
from lockkeeper.network.inbound import Inbound
from lockkeeper.network.introduction import introduction
from lockkeeper.network.listening import AdvisoryWindow
from lockkeeper.network.membership import Bridges
from lockkeeper.network.settings import BridgeSettings
from lockkeeper.protocols.handover import HandedOver
from lockkeeper.protocols.openwire.agreement import Agreement
from lockkeeper.protocols.openwire.codec import agree, offer
from lockkeeper.protocols.openwire.convert import append_outputs
from lockkeeper.protocols.openwire.errors import ProtocolError
from lockkeeper.protocols.openwire.frames import FrameBuffer, Piece, framed
from lockkeeper.protocols.settings import ListenerSettings
from lockkeeper.store.base import StoreError

RESPONSE: Final = 30
MESSAGE_ACK: Final = 22
_CORRELATION_AT: Final = 6


class BridgeListener(Protocol):
    """Hears of a bridge."""

    def begun(self, bridge: "Bridge") -> None:
        """Hear that the other broker has introduced itself."""

    def forwards(self, bridge: "Bridge") -> None:
        """Hear that messages are forwarded to the other broker from now on."""

    def ended(self, bridge: "Bridge") -> None:
        """Hear that the bridge is over, once."""


class Bridge:
    """A session of `protocols.session`.

    `peer` is None until the other broker has introduced itself. `failure` is empty unless
    something went wrong.
    """

    is_bulky = False
    partial = 0
    unread = 0

    def __init__(
        self,
        broker: Broker,
        bridges: Bridges,
        settings: BridgeSettings,
        wire: ListenerSettings,
        identifier: str,
        address: str,
        listener: "BridgeListener",
        own_url: str = "",
    ) -> None:
        """*identifier* is to be unique among all connections of both brokers.

        Clients of the other broker may be told of *own_url*.
        """
        self._own_url = own_url
        self.settings = settings
        self.connection = broker.open_connection(address)
        self.peer: NetworkPeer | None = None
        self.demand: DemandBook | None = None
        self.forwarder: Forwarder | None = None
        self.inbound: Inbound | None = None
        self.is_initiator = True
        self.closing = False
        self.failure = ""
        self._broker = broker
        self._bridges = bridges
        self._wire = wire
        self._identifier = identifier
        self._listener: BridgeListener | None = listener
        self._agreement: Agreement | None = None
        self._advisories: AdvisoryWindow | None = None
        self._buffer = FrameBuffer(wire.frame_bytes_max)
        self._out: list[Piece] = []

    def take_over(self, handed_over: HandedOver) -> None:
        """Be the end that was dialled, from the peer's login on."""
        self.is_initiator = False
        self.connection, self._agreement = handed_over.connection, handed_over.agreement
        self._out += handed_over.pieces
        info = handed_over.peer
        self._meet(info)
        self._tell_of_subscriptions()
        if info.duplex_connection:
            self._begin_forwarding()
            if self.demand is not None and handed_over.subscriptions is not None:
                self.demand.synchronize(handed_over.subscriptions)
        elif self.peer is not None:
            begin_bridge(self._broker, self.connection, self.peer, is_forwarded_to=False)
        self.receive_data(handed_over.rest)

    # The session

    @property
    def inactivity_duration(self) -> int:
        """Longest silence of the peer in ms; 0 for no limit, and before the handshake."""
        return self._agreement.inactivity_duration if self._agreement else 0

    @property
    def is_open(self) -> bool:
        """Tell whether the other broker has introduced itself."""
        return self.peer is not None and not self.closing

    def start(self) -> None:
        """Send our half of the handshake."""
        if self.is_initiator:
            self._out.append(framed(openwire.encode(offer(self._wire))))

    def keep_alive(self) -> None:
        """Send a sign of life."""
        self._send(openwire.KeepAliveInfo())

    def receive_data(self, data: bytes, most: int = sys.maxsize) -> None:
        """Take bytes from the peer and carry out every whole command among them."""
        if self.closing:
            return
        joined = self._buffer.feed(data)
        if joined is None:
            return
        try:
            self._read_frames(joined)
        except (ProtocolError, MalformedMessageError, BrokerError, ValueError) as error:
            self.fail(str(error))
        except StoreError:
            raise
        except Exception as error:
            self._broker.containment.note_error("command", self.connection.address, error)
            self.fail(str(internal_error(error)))
        self._acknowledge()
        if self._out:
            self.connection.announce()

    def read_on(self, most: int) -> None:
        """See `Session`: everything is carried out as it comes."""

    def data_to_send(self) -> list[Piece]:
        """Return the bytes to send now, and forget them."""
        connection = self.connection
        if connection.outbox:
            outputs, connection.outbox = connection.outbox, []
            self._convert(outputs)
            self._acknowledge()
        if connection.is_ended:
            self._close("the broker ended the connection")
        out, self._out = self._out, []
        return out

    def discard(self) -> None:
        """Forget what there is to send: nobody is there to take it."""
        self._out, self.connection.outbox = [], []

    def connection_lost(self) -> None:
        """Give back what was on its way."""
        self._close(self.failure or "the connection was lost")
        if self.demand is not None:
            self.demand.end()
        self._broker.disconnect(self.connection)
        listener, self._listener = self._listener, None
        if listener is not None:
            listener.ended(self)

    def fail(self, reason: str) -> None:
        """End the bridge for *reason*."""
        self._close(reason)
        self.connection.announce()

    def drain(self) -> None:
        """Forward no more; what was forwarded can still be confirmed."""
        if self.demand is not None:
            self.demand.drain()

    @property
    def is_drained(self) -> bool:
        """Tell whether nothing waits for a confirmation of the other broker."""
        return self.demand is None or not any(each.outstanding for each in self.demand.demands)

    def stop(self) -> None:
        """End the bridge in words."""
        if not self.closing and self._agreement is not None:
            self._send(openwire.ShutdownInfo())
        self.closing = True
        self.connection.announce()

    def _close(self, reason: str) -> None:
        if not self.closing:
            self.closing = True
            self.failure = reason

    # What comes

    def _read_frames(self, data: bytes) -> None:
        position, length = 0, len(data)
        while position <= length - 4 and not self.closing:
            start = position + 4
            size = self._buffer.check_size(int.from_bytes(data[position:start], "big"))
            end = start + size
            if end > length:
                break
            kind = data[start]
            if kind == RESPONSE and self.forwarder is not None:
                at = start + _CORRELATION_AT
                self.forwarder.confirmed(int.from_bytes(data[at : at + 4], "big", signed=True))
            elif kind in MESSAGE_TYPES:
                self._receive_message(data, start, end)
            elif kind == MESSAGE_ACK and self.inbound is not None:
                self.inbound.receive_acknowledgement(data, start, end)
            else:
                self._receive_command(data, start, end)
            position = end
        if position < length and not self.closing:
            self._buffer.keep(data, position)

    def _receive_message(self, data: bytes, start: int, end: int) -> None:
        if self.inbound is None:
            raise ProtocolError("a message from a broker that has not introduced itself")
        advisory = self.inbound.receive_message(data, start, end)
        if advisory is not None:
            self._hear(advisory)

    def _receive_command(self, data: bytes, start: int, end: int) -> None:
        if self._agreement is None:
            self._shake_hands(data, start, end)
            return
        command, _ = self._agreement.codec.decode(data, start, end)
        if isinstance(command, openwire.MessageDispatch):
            if command.message is not None:
                self._hear(command.message)
        elif isinstance(command, openwire.ExceptionResponse):
            self._take_refusal(command)
        elif isinstance(command, openwire.BrokerInfo) and self.peer is None:
            self._meet(command)
            self._introduce()
        elif isinstance(command, openwire.ConnectionError):
            raise ProtocolError(_said(command.exception))
        elif isinstance(command, openwire.ShutdownInfo):
            self._close("the other broker shut the bridge down")
        elif isinstance(command, openwire.BrokerSubscriptionInfo):
            if self.demand is not None:
                self.demand.synchronize(command.subscription_infos or ())
        elif self.inbound is not None and isinstance(command, openwire.BaseCommand):
            self.inbound.carry_out(command)

    def _hear(self, message: openwire.Message) -> None:
        """Take an advisory of the peer."""
        if self.demand is None or self._advisories is None:
            return
        try:
            self.demand.hear(message.data_structure)
        except BrokerError as error:
            self.demand.refused[str(message.destination)] = str(error)
        ack = self._advisories.heard(message)
        if ack is not None:
            self._send(ack)

    def _take_refusal(self, response: openwire.ExceptionResponse) -> None:
        """End a message for a temporary destination that is gone, or the bridge."""
        reason = _said(response.exception)
        number = response.correlation_id
        pending = None if self.forwarder is None else self.forwarder.refused(number)
        if pending is None:
            raise ProtocolError(reason)
        consumer = pending.demand.consumer
        if not pending.demand.destination.is_temporary or consumer is None:
            raise ProtocolError(reason)
        if pending.sequence in consumer.dispatched:
            self._broker.poison(consumer, pending.sequence, 1, reason, None)
        assert self.demand is not None
        self.demand.confirmed(pending.demand)

    # Beginning

    def _shake_hands(self, data: bytes, start: int, end: int) -> None:
        peer, _ = openwire.decode(data, start, end=end)
        if not isinstance(peer, openwire.WireFormatInfo):
            raise ProtocolError(f"{type(peer).__name__} before the WireFormatInfo")
        self._agreement = agree(self._wire, peer)

    def _meet(self, info: openwire.BrokerInfo) -> None:
        """Learn who the other broker is."""
        assert self._agreement is not None
        broker_id = info.broker_id.value if info.broker_id else ""
        if not broker_id:
            raise ProtocolError("a BrokerInfo without its brokerId")
        if broker_id == self._broker.broker_id:
            raise ProtocolError(f"the bridge leads back to this broker, {self._broker.name}")
        connection = self.connection
        self.peer = connection.network = NetworkPeer(
            broker_id,
            info.broker_name or "",
            info.broker_url or "",
            has_dialled=not self.is_initiator,
            connector=self.settings.name,
            forwards=self.settings.duplex or not self.is_initiator,
        )
        self.peer.figures = self._figures
        # Its messages are looked up in the audit, and noted there.
        connection.fault_tolerant = connection.reconnected = True
        connection.audit = audit = NetworkAudit(self._broker.audit, self._broker.broker_id)
        self.inbound = Inbound(self._broker, audit, self._wire, connection, self._agreement)
        self.peer.refuse = self.inbound.refuse
        if self._listener is not None:
            self._listener.begun(self)

    def _figures(self) -> tuple[int, int]:
        """See `NetworkPeer.figures`."""
        forwarder, inbound = self.forwarder, self.inbound
        return (
            0 if forwarder is None else forwarder.dequeued,
            0 if inbound is None else inbound.taken - inbound.duplicates,
        )

    def _introduce(self) -> None:
        """Say who we are, and ask for consumers."""
        assert self.peer is not None
        broker, settings, token = self._broker, self.settings, self.settings.client_id_token
        parts = (settings.name, self.peer.broker_name, "inbound", broker.name)
        broker.connect(self.connection, self._identifier, token.join(parts))
        self._begin_forwarding()

    def _begin_forwarding(self) -> None:
        assert self.peer is not None and self._agreement is not None and self.inbound is not None
        broker, settings = self._broker, self.settings
        producer = ProducerId(self._identifier, 1, 1)
        self.forwarder = Forwarder(
            broker.broker_id,
            self.peer.broker_id,
            producer,
            self._agreement.codec,
            settings,
        )
        self._advisories = AdvisoryWindow(settings, self._identifier)
        self.demand = DemandBook(broker, self._bridges, self.connection, self.peer, settings)
        begin_bridge(broker, self.connection, self.peer, is_forwarded_to=True)
        own_url = self._own_url if self.is_initiator else None
        for command in introduction(broker, settings, self._identifier, own_url):
            self._send(command)
            if isinstance(command, openwire.BrokerInfo):
                self._tell_of_subscriptions()
        self.demand.begin()
        if self._listener is not None:
            self._listener.forwards(self)

    def _tell_of_subscriptions(self) -> None:
        assert self._agreement is not None
        if self.settings.sync_durable_subs and self._agreement.codec.version >= VERSION_MIN:
            self._send(subscription_info(self._broker, self.settings))

    # What goes

    def _send(self, command: openwire.BaseCommand) -> None:
        assert self._agreement is not None
        if self.forwarder is not None and not isinstance(command, openwire.KeepAliveInfo):
            command.command_id = next(self.forwarder.numbers)
        self._out.append(framed(self._agreement.codec.encode(command)))

    def _convert(self, outputs: Sequence[Output]) -> None:
        """Make frames of what the core has for the peer, in order."""
        assert self._agreement is not None
        now, others = self._broker.now, list[Output]()
        for output in outputs:
            if type(output) is tuple and isinstance(tag := output[0], Demand):
                assert self.forwarder is not None
                self._convert_others(others)
                _, references = cast("Delivery", output)
                self.forwarder.append(self._out, tag, references, now)
            elif isinstance(output, ConsumerClosed) and isinstance(output.tag, Demand):
                assert self.demand is not None
                self.demand.closed(output.tag)
            elif isinstance(output, WindowChanged) and isinstance(output.tag, Demand):
                continue
            else:
                if isinstance(output, Disconnect):
                    self._close(str(output.error))
                others.append(output)
        self._convert_others(others)

    def _convert_others(self, outputs: list[Output]) -> None:
        if outputs:
            assert self._agreement is not None
            agreement, now = self._agreement, self._broker.now
            append_outputs(self._out, outputs, agreement.codec, agreement.spliced, now)
            outputs.clear()

    def _acknowledge(self) -> None:
        """End messages that the other broker has."""
        forwarder = self.forwarder
        if forwarder is None or not forwarder.settled:
            return
        settled, forwarder.settled = forwarder.settled, {}
        for demand, sequences in settled.items():
            demand.outstanding -= len(sequences)
            consumer = demand.consumer
            if consumer is None or self.demand is None:
                continue
            found = (consumer.dispatched.pop(each, None) for each in sequences)
            references = [each for each in found if each is not None]
            if references:
                consumer.consumed(references, None)
            self.demand.confirmed(demand)


def _said(exception: openwire.Throwable | None) -> str:
    """Return what the other broker gives as its reason."""
    if exception is None:
        return "the other broker refused without a reason"
    return f"{exception.class_name}: {exception.message}"
