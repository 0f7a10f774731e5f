"""The way of blobs: HTTP GET and PUT as ActiveMQ's client does them, and files where allowed."""

from collections.abc import Callable, Collection
from http.client import HTTPException
from io import BufferedReader, RawIOBase
from os import fsencode
from pathlib import Path
from shutil import copyfileobj
from typing import BinaryIO, Protocol
from urllib.error import HTTPError
from urllib.parse import quote, urlsplit
from urllib.request import (
    BaseHandler,
    FileHandler,
    HTTPDefaultErrorHandler,
    HTTPErrorProcessor,
    OpenerDirector,
    ProxyHandler,
    Request,
    UnknownHandler,
    url2pathname,
)
from uuid import uuid4

from lockkeeper.client.blob_pace import EncryptedPacedHandler, Limits, PacedHandler
from lockkeeper.client.errors import BlobError

HANDLERS: dict[str, Callable[[Limits], BaseHandler]] = {
    "http": PacedHandler,
    "https": EncryptedPacedHandler,
    "file": lambda _: FileHandler(),
}
ALWAYS: tuple[type[BaseHandler], ...] = (
    ProxyHandler,
    UnknownHandler,
    HTTPDefaultErrorHandler,
    HTTPErrorProcessor,
)
"""No redirect is followed: whoever has looked at a URL has not looked at where it leads."""


class Answer(Protocol):
    """Answer of a server, of which only the body is of interest."""

    def read1(self, size: int, /) -> bytes:
        """Return at most *size* bytes as soon as there are some, none at the end."""

    def close(self) -> None:
        """Let the server go."""


def download(url: str, timeout: float, bytes_max: int, schemes: Collection[str]) -> BufferedReader:
    """Return a file to read *url* from; see `Blob.open`."""
    answer = _answer(Request(_checked(url, schemes)), Limits(timeout, bytes_max), schemes)
    length = getattr(answer, "length", None)
    if length is not None and length > bytes_max:
        answer.close()
        raise BlobError(f"{shown(url)} has {length} bytes, and {bytes_max} are allowed (bytes_max)")
    return BufferedReader(_Limited(shown(url), answer, bytes_max))


def put_file(
    file: BinaryIO, upload_url: str, mime_type: str, timeout: float, schemes: Collection[str]
) -> str:
    """Put a file below *upload_url*, and return its URL; see `blobs.upload`."""
    url = f"{_checked(upload_url, schemes).removesuffix('/')}/{uuid4()}{_named(file)}"
    if upload_url.partition(":")[0].lower() == "file":
        _write_file(file, url)
        return url
    # Without a length it goes in chunks, as a stream does from Java.
    request = Request(url, file, {"Content-Type": mime_type}, method="PUT")
    _answer(request, Limits(timeout, 0), schemes).close()
    return url


def _write_file(file: BinaryIO, url: str) -> None:
    """Copy a file to where a `file:` URL says, as ActiveMQ's FileSystemBlobStrategy does."""
    path = Path(url2pathname(urlsplit(url).path))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("xb") as copy:
            copyfileobj(file, copy)
    except OSError as error:
        raise BlobError(f"{url} was not written: {error}") from error


def _named(file: BinaryIO) -> str:
    """Return what of a file's name belongs to its URL: others tell it from that."""
    name = getattr(file, "name", None)
    return f"-{quote(fsencode(Path(name).name))}" if isinstance(name, str) else ""


def shown(url: str) -> str:
    """Return *url* for people and logs: on one line, and without what may be secret in it."""
    head, mark, _ = url.partition("?")
    scheme, slashes, rest = head.partition("://")
    place, slash, path = rest.partition("/")
    text = f"{scheme}{slashes}{place.rpartition('@')[2]}{slash}{path}{mark and '?…'}"
    return "".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in text)


def _checked(url: str, schemes: Collection[str]) -> str:
    unknown = sorted(set(schemes) - HANDLERS.keys())
    if unknown:
        raise ValueError(f"blobs are at {', '.join(HANDLERS)}, never at {unknown[0]!r} (schemes)")
    if url.partition(":")[0].lower() not in schemes:
        allowed = ", ".join(schemes)
        raise BlobError(f"{shown(url)} is not opened: only {allowed} is allowed (schemes)")
    try:
        has_user = "@" in urlsplit(url).netloc
    except ValueError as error:
        raise BlobError(f"{shown(url)} is no URL: {error}") from error
    if has_user:
        raise BlobError(f"{shown(url)} has a user name, which is not sent: leave it out of the URL")
    return url


def _answer(request: Request, limits: Limits, schemes: Collection[str]) -> Answer:
    """Return the answer to a request. Raises BlobError."""
    opener = OpenerDirector()
    for always in ALWAYS:
        opener.add_handler(always())
    for scheme in schemes:
        opener.add_handler(HANDLERS[scheme](limits))
    try:
        answer: Answer = opener.open(request, timeout=limits.timeout)
        return answer
    except (OSError, HTTPException, ValueError) as error:
        text = f"{request.get_method()} {shown(request.full_url)}: {error}"
        if isinstance(error, HTTPError):
            error.close()
            if elsewhere := error.headers.get("Location"):
                text += f"; it has moved to {shown(elsewhere)}, which is not opened unasked"
        raise BlobError(text) from error


class _Limited(RawIOBase):
    """What a server answers, up to so many bytes, and not less than it has promised."""

    def __init__(self, url: str, answer: Answer, bytes_max: int) -> None:
        self._url = url
        self._answer = answer
        self._bytes_max = bytes_max
        self._count = 0

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """Fill the buffer as far as there is something; return how many bytes that are."""
        wanted = min(len(buffer), self._bytes_max + 1 - self._count)
        try:
            # `read` takes all that comes in a chunk whose length is below 0, whatever is wanted.
            found = self._answer.read1(wanted)
        except (OSError, HTTPException, ValueError) as error:
            raise BlobError(f"{self._url} after {self._count} bytes: {error}") from error
        self._count += len(found)
        if len(found) > wanted or self._count > self._bytes_max:
            raise BlobError(f"{self._url} has more than {self._bytes_max} bytes (bytes_max)")
        left = getattr(self._answer, "length", None)
        if not found and left:
            raise BlobError(f"{self._url} is cut short: {left} bytes have not come")
        buffer[: len(found)] = found
        return len(found)

    def close(self) -> None:
        """Let the server go."""
        self._answer.close()
        super().close()
