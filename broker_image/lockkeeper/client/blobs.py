"""Blobs: bodies that lie at a URL, of which a message carries only the URL (openwire.md section 5).

What a URL says is its sender's choice: it is opened only when the application asks for it, with
limits. The standard library's HTTP is loaded then, and not before.
"""

import re
from collections.abc import Collection
from contextlib import ExitStack
from dataclasses import dataclass
from io import BufferedReader, TextIOBase
from os import PathLike
from pathlib import Path
from typing import BinaryIO, TypeAlias
from urllib.parse import unquote

BLOB_BYTES_MAX = 100 * 1024 * 1024
BLOB_SECONDS_MAX = 30.0
MIME_TYPE = "application/octet-stream"
SCHEMES = ("http", "https")
UPLOAD_SCHEMES = (*SCHEMES, "file")
"""Those of URLs that the application has chosen itself."""
Source: TypeAlias = "str | PathLike[str] | BinaryIO"
"""A file by its path, or an open one."""


@dataclass(frozen=True, slots=True)
class Blob:
    """The body of a blob message: a URL, and what its sender says of it.

    `deleted_by_broker` asks for its deletion once it is consumed, which Lockkeeper leaves to you.
    """

    url: str
    mime_type: str = MIME_TYPE
    deleted_by_broker: bool = False

    @property
    def name(self) -> str:
        """The last part of the URL's path, without its escapes; empty when there is none.

        A file may be called so in any folder: neither an escape nor dots lead out of it.
        """
        path = re.split("[?#]", self.url.partition("://")[2])[0]
        name = re.split(r"[/\\\0]", unquote(path))[-1] if "/" in path else ""
        return "" if name in (".", "..") else name

    def open(
        self,
        *,
        timeout: float = BLOB_SECONDS_MAX,
        bytes_max: int = BLOB_BYTES_MAX,
        schemes: Collection[str] = SCHEMES,
    ) -> BufferedReader:
        """Return a file to read the blob from, which the caller closes; waits in its thread.

        *timeout* is for each answer of the server, in seconds; one that sends less than 1 KiB a
        second may take three of them besides. *schemes* are those that the URL
        may have; `file`, which opens files of this machine, is one that must be named. Raises
        BlobError, also while it is read: after *bytes_max* bytes, and when it is cut short.
        """
        from lockkeeper.client.blob_transfer import download

        return download(self.url, timeout, bytes_max, schemes)

    def read(
        self,
        *,
        timeout: float = BLOB_SECONDS_MAX,
        bytes_max: int = BLOB_BYTES_MAX,
        schemes: Collection[str] = SCHEMES,
    ) -> bytes:
        """Return the whole blob; as `open`, which has the arguments."""
        with self.open(timeout=timeout, bytes_max=bytes_max, schemes=schemes) as file:
            return file.read()


def upload(
    source: Source, upload_url: str, mime_type: str, timeout: float = BLOB_SECONDS_MAX
) -> Blob:
    """Put a file below *upload_url* under a name that is new, and return the blob to be sent.

    With `file:` that is a directory, which is made unless it is there.

    Waits in its thread, up to *timeout* seconds for each answer. Raises BlobError when the server
    does not take it, OSError when the file cannot be read, ValueError for one that is open as text.
    """
    from lockkeeper.client.blob_transfer import put_file

    if isinstance(source, TextIOBase):
        # HTTP's library would send other bytes than the file has.
        raise ValueError(f"{source!r} is open as text: open it with 'rb'")
    with ExitStack() as stack:
        file: BinaryIO
        if isinstance(source, str | PathLike):
            file = stack.enter_context(Path(source).open("rb"))
        else:
            file = source
        url = put_file(file, upload_url, mime_type, timeout, UPLOAD_SCHEMES)
    return Blob(url, mime_type, deleted_by_broker=True)
