"""One connection of a RocketMQ client: requests in, commands to the core, answers out."""

import sys
from typing import Final

from lockkeeper.broker.connections import STALLED_BYTES_MAX
from lockkeeper.broker.core import Broker
from lockkeeper.broker.errors import BrokerError, internal_error
from lockkeeper.broker.outputs import Output
from lockkeeper.broker.streams.outputs import ReadResult
from lockkeeper.message.errors import MalformedMessageError
from lockkeeper.protocols.rocketmq import groups, reading, sending, topics
from lockkeeper.protocols.rocketmq.codec import Command, decode, encode
from lockkeeper.protocols.rocketmq.codes import Request, Response
from lockkeeper.protocols.rocketmq.convert import command_of, refusal_of
from lockkeeper.protocols.rocketmq.errors import ProtocolError
from lockkeeper.protocols.rocketmq.fields import Refusal
from lockkeeper.protocols.rocketmq.frames import FrameBuffer, Piece
from lockkeeper.protocols.rocketmq.login import Login
from lockkeeper.protocols.rocketmq.messages import parse_host
from lockkeeper.protocols.rocketmq.talk import (
    Handler,
    Place,
    Talk,
    answer,
    answering,
    refusing,
)
from lockkeeper.protocols.settings import ListenerSettings

HANDLERS: Final[dict[int, Handler]] = {
    **topics.HANDLERS,
    **groups.HANDLERS,
    **sending.HANDLERS,
    **reading.HANDLERS,
}
"""What carries out each request."""
FOR_STRANGERS: Final[dict[int, Handler]] = {Request.GET_ROUTEINFO_BY_TOPIC: topics.blind_route}
"""What answers those who have not said who they are."""
SILENCE_MS_MAX: Final = 120_000
"""How long a client may say nothing: it sends heartbeats every 30 s."""
_HELD_BYTES: Final = STALLED_BYTES_MAX + 1


class RocketMQSession:
    """See `lockkeeper.protocols.session.Session`. Raises nothing."""

    __slots__ = (
        "_broker",
        "_buffer",
        "_held",
        "_is_speaking",
        "_login",
        "_out",
        "_talk",
        "closing",
        "connection",
        "failure",
        "is_bulky",
        "partial",
        "unread",
    )

    def __init__(self, broker: Broker, settings: ListenerSettings, address: str) -> None:
        self._broker = broker
        self.connection = broker.open_connection(address)
        place = Place(settings.address, parse_host(settings.bound_to))
        self._talk = Talk(broker, self.connection, place)
        self._login = Login(broker, self.connection, self._go_on)
        self._buffer = FrameBuffer(settings.frame_bytes_max)
        self._held: Command | None = None
        self._out: list[Piece] = []
        self._is_speaking = False
        self.is_bulky = False
        self.partial = 0
        self.unread = 0
        self.closing = False
        self.failure = ""

    @property
    def inactivity_duration(self) -> int:
        """Longest silence of the peer in ms, once it has said something."""
        return SILENCE_MS_MAX if self._is_speaking else 0

    @property
    def is_open(self) -> bool:
        """Tell whether the client has made a request, and who is to say so has said who it is."""
        return self._is_speaking and self._login.is_over

    def start(self) -> None:
        """Say nothing: the client begins."""

    def keep_alive(self) -> None:
        """Say nothing: the client is the one who gives signs of life."""

    def receive_data(self, data: bytes, most: int = sys.maxsize) -> None:
        """Take bytes from the peer; carry out the requests that begin within *most* of them."""
        self._buffer.feed(data)
        self.read_on(most)

    def read_on(self, most: int) -> None:
        """Carry out about *most* bytes of what is `unread`; nothing of an ended connection."""
        if self.closing or self.connection.is_ended:
            self.unread = 0
            return
        try:
            self._read_frames(most)
        except Exception as error:
            self._part_over(error)

    def _read_frames(self, most: int) -> None:
        buffer, begun_with = self._buffer, len(self._buffer)
        answered = 0
        while self._held is None and begun_with - len(buffer) + answered <= most:
            frame = buffer.take_frame()
            if frame is None:
                self._note_rest(len(buffer))
                return
            said, told = len(self._out), len(self.connection.outbox)
            self._receive(decode(frame))
            # A short request may have a long answer, which is read before the next is made.
            answered += sum(map(len, self._out[said:]))
            answered += sum(map(_bytes_read, self.connection.outbox[told:]))
        self._note_rest(0)
        self.unread = 0 if self._held is not None else len(buffer)

    def _note_rest(self, partial: int) -> None:
        """Count the beginning of a frame: it is in memory."""
        if partial != self.partial:
            self._broker.memory.count_partial(partial - self.partial)
            self.partial = partial
        self.unread = 0

    def _receive(self, command: Command) -> None:
        """Carry a request out, or take an answer."""
        self._is_speaking = True
        if command.is_answer:
            self._talk.answered(command)
        elif self._login.needs_verdict(command):
            self._held = command
            self.connection.stalled_bytes += _HELD_BYTES
        else:
            self._carry_out(command)

    def _go_on(self) -> None:
        """Carry out what waited until it was known who the client is."""
        held, self._held = self._held, None
        if held is None or self.closing:
            return
        self.connection.stalled_bytes -= _HELD_BYTES
        self._carry_out(held)
        self.read_on(sys.maxsize)

    def _carry_out(self, request: Command) -> None:
        try:
            answered = self._handler_of(request)(self._talk, request)
        except Refusal as refusal:
            answered = answer(code=refusal.code, remark=str(refusal))
        except BrokerError as error:
            answered = refusing(error)
        except (ProtocolError, MalformedMessageError) as error:
            answered = answer(code=Response.SYSTEM_ERROR, remark=str(error))
        except Exception as error:
            self._note_error(error)
            answered = refusing(internal_error(error))
        if answered is not None and not request.is_one_way:
            if request.code in sending.SENDS:
                answered.fields = {**sending.REGION, **answered.fields}
            self._say(answering(request, answered))

    def _handler_of(self, request: Command) -> Handler:
        """Return what carries a request out. Raises Refusal."""
        try:
            self._login.check_request(request)
        except Refusal:
            if request.code in FOR_STRANGERS:
                return FOR_STRANGERS[request.code]
            raise
        self._talk.introduce()
        handler = HANDLERS.get(request.code)
        if handler is None:
            raise Refusal(
                Response.REQUEST_CODE_NOT_SUPPORTED,
                f" request type {request.code} not supported",
            )
        return handler

    def _say(self, command: Command) -> None:
        """Send a command with all others at the end of this turn."""
        if not self._out:
            self.connection.announce()
        self._out.append(encode(command))

    def _note_error(self, error: Exception) -> None:
        """Count an error that nobody expected. Raises it if it is the store's."""
        self._broker.containment.note_error("command", self.connection.address, error)

    def _part_over(self, error: Exception) -> None:
        """End the connection over what its bytes have led to. Raises the store's errors."""
        if not isinstance(error, ProtocolError):
            self._note_error(error)
            error = internal_error(error)
        self.failure, self.closing = str(error), True
        self._note_rest(0)

    def data_to_send(self) -> list[Piece]:
        """Return the bytes to send now, and forget them."""
        connection = self.connection
        outputs, connection.outbox = connection.outbox, []
        for output in outputs:
            self._tell_output(output)
        if connection.is_ended:
            self.closing = True
        out, self._out = self._out, []
        return out

    def _tell_output(self, output: Output) -> None:
        """Tell the peer of an output; what cannot be told is an error of its request alone."""
        try:
            command = command_of(self._talk, output)
            frame = b"" if command is None else encode(command)
        except Exception as error:
            if not isinstance(error, ProtocolError | MalformedMessageError):
                self._note_error(error)
                error = internal_error(error)
            command = refusal_of(output, error)
            frame = b"" if command is None else encode(command)
        if frame:
            self._out.append(frame)

    def discard(self) -> None:
        """Forget what there is to send: nobody is there to take it."""
        outputs, self.connection.outbox = self.connection.outbox, []
        for output in outputs:
            refusal_of(output, BrokerError("the client has gone before it was asked"))
        self._out = []

    def connection_lost(self) -> None:
        """Give back what the peer held."""
        self.closing = True
        self._note_rest(0)
        self._talk.end()
        self.discard()
        self._broker.disconnect(self.connection)


def _bytes_read(output: Output) -> int:
    """Return the bytes of the messages that an output brings."""
    if isinstance(output, ReadResult):
        return sum(record.size for record in output.records)
    return 0
