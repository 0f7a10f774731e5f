"""A protocol of one idea: each line is a message for a queue, and comes back from there."""

import sys
from itertools import count
from typing import cast

from lockkeeper.broker.core import Broker
from lockkeeper.broker.outputs import Delivery
from lockkeeper.broker.subscription_manager import DELIVERED_UNKNOWN
from lockkeeper.broker.subscriptions.request import ConsumeRequest
from lockkeeper.message.destination import Destination, queue
from lockkeeper.message.ids import MessageId, ProducerId
from lockkeeper.message.openwire import AckType, ActiveMQBytesMessage
from lockkeeper.message.rewrite import decoded, encoded
from lockkeeper.protocols.settings import ListenerSettings

ECHO = queue("ECHO")
PREFETCH = 10
_names = count(1)


class EchoSession:
    """See `lockkeeper.protocols.session.Session`."""

    def __init__(self, broker: Broker, settings: ListenerSettings, address: str) -> None:
        self.connection = broker.open_connection(address)
        self.closing, self.is_bulky, self.failure = False, False, ""
        self.partial = self.unread = 0
        self._broker = broker
        self._line_bytes_max = settings.frame_bytes_max
        self._pending = b""
        self._sent = count(1)

    inactivity_duration = 0

    @property
    def is_open(self) -> bool:
        """Tell whether the first line has come: it is the client's name."""
        return bool(self.connection.identifier)

    def start(self) -> None:
        """Say nothing: the client begins."""

    def keep_alive(self) -> None:
        """Say nothing: silence is allowed."""

    def receive_data(self, data: bytes, most: int = sys.maxsize) -> None:
        """Take bytes; carry out the lines that begin before *most*."""
        self._pending += data
        self.read_on(most)

    def read_on(self, most: int) -> None:
        """Carry out lines that begin within *most* bytes; the whole ones after are `unread`."""
        at = 0
        while not self.closing and at <= most and (end := self._pending.find(b"\n", at)) >= 0:
            self._take(self._pending[at:end])
            at = end + 1
        self._pending = self._pending[at:]
        if len(self._pending) > self._line_bytes_max and b"\n" not in self._pending:
            self._fail("a line without an end")
        self.unread = 0 if self.closing else self._pending.rfind(b"\n") + 1

    def place(self, name: str) -> Destination:
        """Return the queue of a client called *name*: one for all."""
        return ECHO

    def listens(self, name: str) -> bool:
        """Tell whether a client called *name* consumes from its queue: all do."""
        return True

    def _take(self, line: bytes) -> None:
        if not line.isascii():
            self._fail("a line that is not ASCII")
        elif not self.is_open:
            self._broker.connect(self.connection, f"{line.decode()}-{next(_names)}", "")
            self._queue = self.place(line.decode())
            if self.listens(line.decode()):
                request = ConsumeRequest(1, self._queue, PREFETCH, tag=1)
                self._consumer = self._broker.subscriptions.subscribe(
                    self.connection, request, None
                )
        else:
            producer = ProducerId(self.connection.identifier, 1, 1)
            fields = ActiveMQBytesMessage(
                producer_id=producer,
                destination=self._queue,
                message_id=MessageId(producer, next(self._sent)),
                content=line,
            )
            message = encoded(fields, next(self._broker.sequences))
            self._broker.send(self.connection, message, None)

    def _fail(self, why: str) -> None:
        self.failure, self.closing = why, True

    def data_to_send(self) -> list[bytes | memoryview]:
        """Return the lines that came back, and acknowledge them."""
        outputs, self.connection.outbox = self.connection.outbox, []
        lines: list[bytes | memoryview] = []
        for output in outputs:
            if type(output) is tuple:
                _, references = cast("Delivery", output)
                for reference in references:
                    lines.append((decoded(reference.loaded).content or b"") + b"\n")
                    sequence = reference.loaded.sequence
                    self._broker.acknowledge(self._consumer, AckType.STANDARD, sequence, 1, None)
        return lines

    def discard(self) -> None:
        """Forget the lines that came back."""
        self.connection.outbox = []

    def connection_lost(self) -> None:
        """Give back what the client held."""
        self.closing = True
        self._broker.disconnect(self.connection, DELIVERED_UNKNOWN)
