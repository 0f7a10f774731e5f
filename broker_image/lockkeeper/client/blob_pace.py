"""Handlers of urllib whose servers may neither talk for ever nor take for ever.

A timeout of sockets is for a single read: a server that sends a byte now and then, or lines of
headers without end, would hold a thread for good.
"""

from functools import partial
from http.client import HTTPConnection, HTTPResponse, HTTPSConnection
from io import BufferedReader, RawIOBase
from socket import SocketIO
from time import monotonic
from typing import Any, NamedTuple, cast
from urllib.request import HTTPHandler, HTTPSHandler, Request

BYTES_PER_SECOND_MIN = 1024
PAUSES_MAX = 3
"""So many times the timeout may pass, besides what the bytes take at the least pace."""
FRAMES_FACTOR, FRAMES_BYTES = 8, 1024 * 1024
"""Headers, lengths of chunks and trailers may have so many times what is allowed, and that."""


class Limits(NamedTuple):
    """Limits of an answer: seconds for each pause, and bytes of its body."""

    timeout: float
    bytes_max: int


class PacedHandler(HTTPHandler):
    """Opens `http` within limits."""

    def __init__(self, limits: Limits) -> None:
        super().__init__()
        self._limits = limits

    def http_open(self, req: Request) -> HTTPResponse:
        """See `urllib.request.HTTPHandler`."""
        return self.do_open(_paced(HTTPConnection, self._limits), req)


class EncryptedPacedHandler(HTTPSHandler):
    """Opens `https` within limits."""

    def __init__(self, limits: Limits) -> None:
        super().__init__()
        self._limits = limits

    def https_open(self, req: Request) -> HTTPResponse:
        """See `urllib.request.HTTPSHandler`."""
        return self.do_open(_paced(HTTPSConnection, self._limits), req)


def _paced(kind: type[HTTPConnection], limits: Limits) -> Any:
    """Return what makes a connection whose answers are read within *limits*."""

    def make(host: str, **options: Any) -> HTTPConnection:
        connection = kind(host, **options)
        connection.response_class = cast("type[HTTPResponse]", partial(_answer, limits))
        return connection

    return make


def _answer(limits: Limits, *arguments: Any, **options: Any) -> HTTPResponse:
    answer = HTTPResponse(*arguments, **options)
    answer.fp = BufferedReader(_Paced(cast("SocketIO", answer.fp.detach()), limits))
    return answer


class _Paced(RawIOBase):
    """What comes from a socket; TimeoutError when it is too slow, ValueError for too much."""

    def __init__(self, source: SocketIO, limits: Limits) -> None:
        self._source, self._limits = source, limits
        self._begun, self._count = monotonic(), 0

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: memoryview) -> int | None:  # type: ignore[override]
        """Fill the buffer as far as there is something; return how many bytes that are."""
        allowed = PAUSES_MAX * self._limits.timeout + self._count / BYTES_PER_SECOND_MIN
        if monotonic() - self._begun > allowed:
            raise TimeoutError(f"the server sends less than {BYTES_PER_SECOND_MIN} bytes a second")
        if self._count > FRAMES_FACTOR * self._limits.bytes_max + FRAMES_BYTES:
            raise ValueError("the server sends headers or trailers without end")
        size = self._source.readinto(buffer)
        self._count += size or 0
        return size

    def close(self) -> None:
        """Let the socket go."""
        self._source.close()
        super().close()
