"""A file server on loopback, as blobs need it: GET, and PUT as ActiveMQ's Java client sends it."""

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BufferedIOBase
from threading import Thread
from typing import Any


class FileServer(ThreadingHTTPServer):
    """Keeps `files` by their paths; `types` are those that they were put with."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.files: dict[str, bytes] = {}
        self.types: dict[str, str] = {}

    @property
    def url(self) -> str:
        """The URL of everything that is here."""
        return f"http://127.0.0.1:{self.server_port}/"


class Handler(BaseHTTPRequestHandler):
    server: FileServer

    def do_GET(self) -> None:
        if self.path.startswith("/redirect/"):
            self.send_response(302)
            self.send_header("Location", self.path.removeprefix("/redirect/"))
            self.end_headers()
            return
        if self.path not in self.server.files:
            self.send_error(404)
            return
        content = self.server.files[self.path]
        self.send_response(200)
        if not self.path.startswith("/without-length"):
            promised = 2 * len(content) if self.path.startswith("/cut") else len(content)
            self.send_header("Content-Length", str(promised))
        self.end_headers()
        self.wfile.write(content)

    def do_PUT(self) -> None:
        is_chunked = self.headers.get("Transfer-Encoding") == "chunked"
        length = int(self.headers.get("Content-Length") or 0)
        content = unchunked(self.rfile) if is_chunked else self.rfile.read(length)
        if self.path.startswith("/forbidden"):
            self.send_error(403)
            return
        self.server.files[self.path] = content
        self.server.types[self.path] = self.headers.get("Content-Type", "")
        self.send_response(201)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


def unchunked(file: BufferedIOBase) -> bytes:
    """Return a body that comes in chunks (RFC 9112 section 7.1)."""
    content = b""
    while size := int(file.readline(), 16):
        content += file.read(size)
        file.readline()
    file.readline()
    return content


@contextmanager
def file_server() -> Iterator[FileServer]:
    """Run a server."""
    with FileServer() as server:
        thread = Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()
