"""Requests: commands whose answer is awaited, over one link after another."""

from lockkeeper.client.core.encoding import reencoded
from lockkeeper.client.core.waiting import WaitLine
from lockkeeper.client.errors import MessagingError, RefusedError, refused
from lockkeeper.message.openwire import BaseCommand, Codec, ExceptionResponse, Response


class Request:
    """A command on its way; repeated to the next broker if it may be.

    A message is the frame it is; any other command is encoded for the link it goes over.
    """

    __slots__ = (
        "_codec",
        "_command",
        "_frame",
        "error",
        "is_done",
        "is_repeatable",
        "line",
        "name",
        "number",
        "response",
        "was_sent",
    )

    def __init__(self, number: int, name: str, is_repeatable: bool = True) -> None:
        self.number = number
        self.name = name
        self.is_repeatable = is_repeatable
        self.is_done = self.was_sent = False
        self.response: Response | None = None
        self.error: MessagingError | None = None
        self.line = WaitLine()
        self._command: BaseCommand | None = None
        self._frame = b""
        self._codec: Codec | None = None

    @classmethod
    def of_command(cls, command: BaseCommand, is_repeatable: bool = True) -> "Request":
        """Return the request that a numbered command makes."""
        request = cls(command.command_id, type(command).__name__, is_repeatable)
        request._command = command
        return request

    @classmethod
    def of_message(cls, number: int, name: str, frame: bytes, codec: Codec) -> "Request":
        """Return the request that a message makes."""
        request = cls(number, name)
        request._frame, request._codec = frame, codec
        return request

    @property
    def is_message(self) -> bool:
        """Tell whether a message is sent."""
        return self._command is None

    def frame_for(self, codec: Codec) -> bytes:
        """Return the frame to send to a broker that *codec* fits."""
        if self._command is not None:
            body = codec.encode(self._command)
            return len(body).to_bytes(4, "big") + body
        assert self._codec is not None
        if codec.version != self._codec.version:
            self._frame, self._codec = reencoded(self._frame, self._codec, codec), codec
        return self._frame

    def settle(self, response: Response) -> None:
        """Give the answer to whoever waits for it."""
        if isinstance(response, ExceptionResponse):
            self.error = refused(response.exception)
        self.response = response
        self.is_done = True
        self.line.wake()

    def fail(self, error: MessagingError) -> None:
        """Give up waiting."""
        if not self.is_done:
            self.error = error
            self.is_done = True
            self.line.wake()

    def result(self) -> Response:
        """Return the answer that is there. Raises RefusedError or what ended the connection."""
        if self.error is not None:
            # Each who asks gets a traceback of its own.
            raise _fresh(self.error)
        assert self.response is not None
        return self.response


def _fresh(error: MessagingError) -> MessagingError:
    if isinstance(error, RefusedError):
        return error
    fresh = type(error)(*error.args)
    fresh.__cause__ = error.__cause__
    return fresh
