"""One OpenWire connection: bytes in, commands to the core, bytes out.

Messages and acknowledgements are recognised by the bytes they begin with, and never become
objects field by field; every other command is decoded by the codec and goes to `commands`.
"""

import sys
from struct import Struct
from typing import Final

from lockkeeper.broker.core import Broker
from lockkeeper.broker.errors import BrokerError, ResourceAllocationError, internal_error
from lockkeeper.broker.outputs import Disconnect, InDoubt, ProducerCredit, Reply
from lockkeeper.message import openwire
from lockkeeper.message.errors import MalformedMessageError
from lockkeeper.message.ids import TransactionId
from lockkeeper.message.layout import MESSAGE_TYPES, RESPONSE_REQUIRED_AT
from lockkeeper.message.message import Message
from lockkeeper.message.reader import MessageReader
from lockkeeper.protocols.handover import HandedOver
from lockkeeper.protocols.openwire.acknowledgements import MESSAGE_ACK, AckReader
from lockkeeper.protocols.openwire.agreement import Agreement
from lockkeeper.protocols.openwire.codec import agree, offer
from lockkeeper.protocols.openwire.commands import Commands
from lockkeeper.protocols.openwire.convert import append_outputs
from lockkeeper.protocols.openwire.errors import ProtocolError
from lockkeeper.protocols.openwire.frames import FrameBuffer, Piece, framed
from lockkeeper.protocols.openwire.login import PARTING_MS
from lockkeeper.protocols.openwire.phases import CLOSED, HANDED_OVER, OPEN, Progress
from lockkeeper.protocols.settings import ListenerSettings
from lockkeeper.store.base import Receipt, StoreFullError

_SIZE = Struct(">I")
# What the Java client counts for a message beyond its content and properties.
MESSAGE_OVERHEAD_BYTES: Final = 1024
LOGIN_FRAME_BYTES_MAX: Final = 64 << 10
"""A client that is not let in yet has nothing longer to say."""
COMMAND_BYTES_MAX: Final = 256 << 10
"""What is no message is never longer: a few names, and a selector."""


class OpenWireSession:
    """The protocol of one connection; `closing` says that the peer is to be disconnected.

    Raises nothing: what the peer does wrong ends in `data_to_send` and `closing`.
    """

    __slots__ = (
        "_acks",
        "_agreement",
        "_broker",
        "_buffer",
        "_commands",
        "_held",
        "_login_frame_bytes_max",
        "_out",
        "_progress",
        "_reader",
        "_settings",
        "_unread",
        "closing",
        "connection",
        "failure",
        "is_bulky",
        "partial",
        "unread",
    )

    def __init__(self, broker: Broker, settings: ListenerSettings, address: str) -> None:
        self._broker = broker
        self._settings = settings
        self.connection = broker.open_connection(address)
        self._login_frame_bytes_max = min(LOGIN_FRAME_BYTES_MAX, settings.frame_bytes_max)
        self._buffer = FrameBuffer(self._login_frame_bytes_max)
        self._reader = MessageReader()
        self._acks = AckReader(broker, self.connection)
        self._progress = Progress()
        self._commands = Commands(broker, settings, self.connection, self._progress)
        self._agreement: Agreement | None = None
        self._held: list[bytes] | None = None
        self._out: list[Piece] = []
        self.is_bulky = False
        # What has come of a frame that is not whole yet is in memory, too.
        self.partial = 0
        # What came and waits for its turn: so many bytes at the end.
        self.unread = 0
        self._unread = b""
        self.closing = False
        self.failure = ""

    @property
    def inactivity_duration(self) -> int:
        """Longest silence of the peer in ms; 0 for no limit, and before the handshake."""
        return self._agreement.inactivity_duration if self._agreement else 0

    @property
    def is_open(self) -> bool:
        """Tell whether the handshake is done, and who is to say so has said who it is."""
        return self._progress.phase is OPEN

    def start(self) -> None:
        """Send our half of the handshake."""
        self._out.append(framed(openwire.encode(offer(self._settings))))

    def keep_alive(self) -> None:
        """Send a sign of life."""
        self._out.append(framed(openwire.encode(openwire.KeepAliveInfo())))

    def receive_data(self, data: bytes, most: int = sys.maxsize) -> None:
        """Take bytes from the peer and carry out every whole command among them.

        Those that begin after *most* bytes are `unread`, until `read_on`.
        """
        if self._held is not None:
            self._held.append(data)
            return
        if self.unread:
            data = self._unread[-self.unread :] + data
            self.unread = 0
        joined = self._buffer.feed(data)
        if joined is None:
            self._count_partial(len(data))
            return
        if self.partial:
            self._count_partial(-self.partial)
        try:
            self._read_frames(joined, 0, most)
        except Exception as error:
            self._part_over(error)

    def read_on(self, most: int) -> None:
        """Carry out about *most* bytes of what is `unread`; nothing of an ended connection."""
        data, position = self._unread, len(self._unread) - self.unread
        self._unread, self.unread = b"", 0
        if not self.closing and not self.connection.is_ended:
            try:
                self._read_frames(data, position, position + most)
            except Exception as error:
                self._part_over(error)

    def _part_over(self, error: Exception) -> None:
        """End the connection over what its bytes have led to. Raises the store's errors."""
        if not isinstance(error, (ProtocolError, MalformedMessageError)):
            self._note_error(error)
            error = internal_error(error)
        self._fail(str(error))

    def _note_error(self, error: Exception) -> None:
        """Count an error that nobody expected. Raises it if it is the store's."""
        self._broker.containment.note_error("command", self.connection.address, error)

    def _count_partial(self, size: int) -> None:
        self.partial += size
        self._broker.memory.count_partial(size)

    def _read_frames(self, data: bytes, position: int, last: int) -> None:
        """Carry out what begins at *position*, up to the frame that begins after *last*."""
        length = len(data)
        if last > length - 4:
            last = length - 4
        limit = self._buffer.frame_bytes_max
        receive_run, sequences = self._reader.receive_run, self._broker.sequences
        acknowledge_run = self._acks.acknowledge_run
        in_time = b""
        agreement = self._admitted()
        while position <= last:
            start = position + 4
            (size,) = _SIZE.unpack_from(data, position)
            if not 0 < size <= limit:
                self._buffer.check_size(size)
            end = start + size
            if end > length:
                break
            kind = data[start]
            if kind in MESSAGE_TYPES:
                run_end = position
                in_time = in_time or self._broker.now.to_bytes(8, "big")
                if agreement is not None and agreement.spliced:
                    messages, run_end = receive_run(data, position, last, limit, sequences, in_time)
                if run_end > position:
                    if len(messages) > 1:
                        self._send_run(messages)
                    else:
                        self._send(messages[0], self._receipt_for(messages[0]))
                    position = run_end
                    continue
                self._receive_message(data, start, end, in_time, agreement)
            elif kind == MESSAGE_ACK:
                run_end = acknowledge_run(data, position, length)
                if run_end > position:
                    position = run_end
                    continue
                self._receive_acknowledgement(data, start, end, agreement)
            else:
                self._receive_command(data, start, end)
                if self.closing:
                    return
                if self._waits():
                    self._held = [data[end:]]
                    return
                limit = self._buffer.frame_bytes_max
                agreement = self._admitted()
                if self._answers_at_length():
                    last = position
            position = end
        if last < position <= length - 4:
            self._unread, self.unread = data, length - position
        elif position < length:
            if length - position > 4 and data[position + 4] not in MESSAGE_TYPES:
                _check_command(_SIZE.unpack_from(data, position)[0])
            self._buffer.keep(data, position)

    def _answers_at_length(self) -> bool:
        """Tell whether the last answer may be so long that the peer should read it first."""
        outputs = self.connection.outbox
        return bool(outputs) and type(outputs[-1]) is InDoubt

    def _waits(self) -> bool:
        """Tell whether it is to be found out first who the client is."""
        login = self._commands.login
        if login is None:
            return False
        if login.is_pending:
            login.hold(self._go_on)
            return True
        self._take_verdict()
        return False

    def _take_verdict(self) -> None:
        """Admit the client, or part with it, in time for it to close its connection itself."""
        self._commands.login = None
        if self._progress.phase is HANDED_OVER:
            return
        if self._progress.phase is OPEN:
            self._let_in()
        else:
            self._progress.become("refuse")
            self._broker.call_after(PARTING_MS, self._part)

    def _let_in(self) -> None:
        """Let the client do more than say who it is, in frames as long as the listener takes."""
        self._buffer.frame_bytes_max = self._settings.frame_bytes_max

    def _go_on(self) -> None:
        """Carry out what was held while the client waited."""
        held, self._held = self._held, None
        self._take_verdict()
        if self._progress.phase is HANDED_OVER:
            self._hand_over(b"".join(held or ()))
            return
        self.receive_data(b"".join(held or ()))
        if self.closing:
            self.connection.announce()

    def _hand_over(self, rest: bytes) -> None:
        """Leave the connection to a bridge, with the *rest* of what came."""
        acceptor, peer, agreement = self._settings.acceptor, self._commands.peer, self._agreement
        assert acceptor is not None and peer is not None and agreement is not None
        pieces, self._out = self._out, []
        # The socket is not closed: it has another session by now.
        self.closing = True
        told = self._commands.subscriptions
        acceptor.accept(HandedOver(self.connection, peer, agreement, pieces, rest, told))

    def _part(self) -> None:
        """End the connection, unless a second attempt was better."""
        if self._progress.phase is not OPEN:
            self._end()
            self.connection.announce()

    def _admitted(self) -> Agreement | None:
        """Return what was agreed on, once the client may do more than say who it is."""
        return self._agreement if self._progress.phase is OPEN else None

    def _receive_message(
        self, data: bytes, start: int, end: int, in_time: bytes, agreement: Agreement | None
    ) -> None:
        if agreement is None or end - start < RESPONSE_REQUIRED_AT + 1:
            raise ProtocolError("a message before its connection is open, or cut short")
        if not agreement.spliced:
            decoded, _ = agreement.codec.decode(data, start, end)
            data = openwire.encode(decoded)
            start, end = 0, len(data)
        sequence = next(self._broker.sequences)
        message = self._reader.receive(data, start, end, sequence, in_time)
        self._send(message, self._receipt_for(message))

    def _send_run(self, messages: list[Message]) -> None:
        """Send messages that begin alike."""
        receipts = [*map(self._receipt_for, messages)]
        try:
            if self._broker.send_run(self.connection, messages, receipts):
                return
        except Exception as error:
            self._note_error(error)
            for message, receipt in zip(messages, receipts, strict=True):
                self._refuse(receipt, internal_error(error), message.transaction_id)
            return
        for message, receipt in zip(messages, receipts, strict=True):
            self._send(message, receipt)

    def _receipt_for(self, message: Message) -> Receipt | None:
        """Return what the client gets when its message is safe, if it waits for anything."""
        body = message.body
        if body[RESPONSE_REQUIRED_AT]:
            return Reply(self.connection, int.from_bytes(body[1:5], "big", signed=True))
        return self._credit(body) if self._commands.windows else None

    def _send(self, message: Message, receipt: Receipt | None) -> None:
        try:
            self._broker.send(self.connection, message, receipt)
        except BrokerError as refusal:
            self._refuse(receipt, refusal, message.transaction_id)
        except StoreFullError as full:
            self._refuse(receipt, ResourceAllocationError(str(full)), message.transaction_id)
        except Exception as error:
            self._note_error(error)
            self._refuse(receipt, internal_error(error), message.transaction_id)

    def _credit(self, body: bytes) -> Receipt | None:
        """Return what gives a producer with a window its room back (openwire.md section 7.9)."""
        message, _ = openwire.decode(body)
        assert isinstance(message, openwire.Message)
        if message.producer_id is None or not self._commands.windows.get(message.producer_id):
            return None
        size = MESSAGE_OVERHEAD_BYTES + len(message.content or b"")
        size += len(message.marshalled_properties or b"")
        return ProducerCredit(self.connection, message.producer_id, size)

    def _receive_acknowledgement(
        self, data: bytes, start: int, end: int, agreement: Agreement | None
    ) -> None:
        if agreement is None:
            raise ProtocolError("an acknowledgement before its connection is open")
        _check_command(end - start)
        receipt: Receipt | None = None
        if data[start + RESPONSE_REQUIRED_AT]:
            correlation = int.from_bytes(data[start + 1 : start + 5], "big", signed=True)
            receipt = Reply(self.connection, correlation)
        ack, _ = agreement.codec.decode(data, start, end)
        assert isinstance(ack, openwire.MessageAck)
        try:
            self._acks.acknowledge(ack, receipt)
            self._acks.learn(data, start, ack)
        except BrokerError as refusal:
            self._refuse(receipt, refusal, ack.transaction_id)
        except Exception as error:
            self._note_error(error)
            self._refuse(receipt, internal_error(error), ack.transaction_id)

    def _receive_command(self, data: bytes, start: int, end: int) -> None:
        _check_command(end - start)
        if self._agreement is None:
            self._shake_hands(data, start, end)
            return
        command, _ = self._agreement.codec.decode(data, start, end)
        if not isinstance(command, openwire.BaseCommand):
            return
        receipt = Reply(self.connection, command.command_id) if command.response_required else None
        try:
            self._commands.carry_out(command, receipt)
        except BrokerError as refusal:
            self._refuse(receipt, refusal)
        except Exception as error:
            self._note_error(error)
            self._refuse(receipt, internal_error(error))
        if self._progress.phase is not OPEN:
            self._buffer.frame_bytes_max = self._login_frame_bytes_max
            if self._progress.phase is HANDED_OVER:
                self._hand_over(data[end:])
        if self._progress.phase is CLOSED:
            self.closing = True

    def _shake_hands(self, data: bytes, start: int, end: int) -> None:
        peer, _ = openwire.decode(data, start, end=end)
        if not isinstance(peer, openwire.WireFormatInfo):
            raise ProtocolError(f"{type(peer).__name__} before the WireFormatInfo")
        self._agreement = agree(self._settings, peer)
        self._progress.become("agree")
        if self._broker.authenticator is None:
            self._progress.become("admit")
            self._let_in()
        broker, cluster = self._broker, self._settings.cluster
        info = openwire.BrokerInfo(
            broker_id=openwire.BrokerId(broker.broker_id),
            broker_name=broker.name,
            broker_url="" if cluster is None else cluster.own,
        )
        self._out.append(framed(self._agreement.codec.encode(info)))
        # Another broker says nothing more until it knows who this is.
        self.connection.announce()

    def _refuse(
        self,
        receipt: Receipt | None,
        error: BrokerError,
        transaction_id: TransactionId | None = None,
    ) -> None:
        """Answer with the error: to the request, or to the connection when none waits.

        The transaction that the command was part of can no longer be committed.
        """
        if transaction_id is not None:
            self._broker.transactions.fail(self.connection, transaction_id, error)
        self.connection.refuse(receipt, error)

    def _fail(self, reason: str) -> None:
        """End the connection for breaking the protocol."""
        self.failure = reason
        self.connection.put(Disconnect(BrokerError(reason)))
        self._end()

    def _end(self) -> None:
        self._progress.become("end")
        self.closing = True
        if self._commands.login is not None:
            self._commands.login.forget()

    def data_to_send(self) -> list[Piece]:
        """Return the bytes to send now, and forget them."""
        out, self._out = self._out, []
        connection = self.connection
        outputs = connection.outbox
        if outputs:
            connection.outbox = []
            agreement = self._agreement
            codec = agreement.codec if agreement else openwire.codec_for(1, False)
            spliced = agreement is not None and agreement.spliced
            self.is_bulky = append_outputs(out, outputs, codec, spliced, self._broker.now)
            if connection.is_ended:
                self._end()
        else:
            self.is_bulky = False
        return out

    def discard(self) -> None:
        """Forget what there is to send: nobody is there to take it."""
        self._out, self.connection.outbox = [], []

    def connection_lost(self) -> None:
        """Give back what the peer held."""
        self._end()
        self._count_partial(-self.partial)
        self._broker.disconnect(self.connection)


def _check_command(size: int) -> None:
    if size > COMMAND_BYTES_MAX:
        raise ProtocolError(f"a command of {size} bytes; none is longer than {COMMAND_BYTES_MAX}")
