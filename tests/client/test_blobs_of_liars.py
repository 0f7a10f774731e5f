"""Blobs whose servers or senders mean harm: what they say costs no memory, no file and no secret."""

import socket
import tracemalloc
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from threading import Thread

import pytest

from lockkeeper.client import Blob, BlobError

OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"


@contextmanager
def answering(pieces: Iterable[bytes]) -> Iterator[str]:
    """Send one client *pieces*, as long as it listens; yields the URL."""

    def answer() -> None:
        peer, _ = listening.accept()
        with peer, suppress(OSError):
            peer.recv(65_536)
            for piece in pieces:
                peer.sendall(piece)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = Thread(target=answer, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/blob"
        thread.join()


@pytest.mark.parametrize("size", [b"-1", b"-7fff", b"ffffffff"])
def test_the_length_of_a_chunk_costs_no_memory(size: bytes) -> None:
    pieces = [CHUNKED + size + b"\r\n", *[bytes(1024 * 1024)] * 20]
    with answering(pieces) as url, Blob(url).open(bytes_max=10_000) as file:
        tracemalloc.start()
        try:
            with pytest.raises(BlobError):
                file.read()
            assert tracemalloc.get_traced_memory()[1] < 2 * 1024 * 1024
        finally:
            tracemalloc.stop()


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("..%2F..%2Fetc%2Fpasswd", "passwd"),
        ("%2Fetc%2Fpasswd", "passwd"),
        ("..%5C..%5Cboot.ini", "boot.ini"),
        ("a.txt%00.png", ".png"),
        ("a/..", ""),
        ("%2E%2E", ""),
        (".", ""),
        ("..%2F", ""),
    ],
)
def test_a_name_leads_into_no_other_folder(path: str, name: str) -> None:
    assert Blob(f"http://example.org/{path}").name == name
