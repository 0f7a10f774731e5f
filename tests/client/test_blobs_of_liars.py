"""Blobs of those who mean harm: what they say costs no memory, no file and no secret."""

import socket
import tracemalloc
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import chain, repeat
from threading import Thread
from time import monotonic, sleep

import pytest

from lockkeeper.client import Blob, BlobError, BrokerUrlError
from lockkeeper.client.url import parse_url

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


def now_and_then() -> Iterator[bytes]:
    while True:
        sleep(0.01)
        yield b"x"


@pytest.mark.parametrize("begin", [b"", OK, OK + b"\r\n", CHUNKED, CHUNKED + b"1"])
def test_a_server_that_goes_on_for_ever_holds_nobody(begin: bytes) -> None:
    begun = monotonic()
    slow = pytest.raises(BlobError, match="less than 1024 bytes a second")
    with answering(chain([begin], now_and_then())) as url, slow:
        Blob(url).read(timeout=0.4)
    assert monotonic() - begun < 20


@pytest.mark.parametrize(
    ("begin", "line"),
    [
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
        (CHUNKED + b"1\r\nx\r\n0\r\n", b"a: b\r\n"),
    ],
)
def test_lines_without_end_have_one(begin: bytes, line: bytes) -> None:
    endless = pytest.raises(BlobError, match="without end")
    with answering(chain([begin], repeat(line * 1000))) as url, endless:
        Blob(url).read(bytes_max=10)


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


def test_errors_tell_no_secret_of_a_url_and_take_one_line() -> None:
    with pytest.raises(BlobError) as caught:
        Blob("http://ann:secret@127.0.0.1:9/a?signature=secret").open()
    assert str(caught.value).startswith("http://127.0.0.1:9/a?… has a user name")
    assert "secret" not in str(caught.value)
    with answering(
        [b"HTTP/1.1 302 Found\r\nLocation: http://b:secret@c/d?e=secret\r\n\r\n"]
    ) as url:
        with pytest.raises(BlobError, match=r"it has moved to http://c/d\?…,") as caught:
            Blob(f"{url}?signature=secret").open()
        assert "secret" not in str(caught.value)
    with pytest.raises(BlobError) as caught:
        Blob("http://127.0.0.1/\r\nERROR it burns").open()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("url", ["http://[::1/a", "http://[a]/", "http://a\u2100b/"])
def test_a_url_that_is_none_is_an_error_of_blobs(url: str) -> None:
    with pytest.raises(BlobError, match=r"is no URL|not known|idna"):
        Blob(url).open()


@pytest.mark.parametrize("place", ["ann:secret@files/", "files/?token=secret"])
def test_an_upload_url_with_a_secret_is_refused(place: str) -> None:
    url = f"tcp://a:1?jms.blobTransferPolicy.uploadUrl=http://{place}"
    with pytest.raises(BrokerUrlError, match="all who receive blobs would be told") as caught:
        parse_url(url)
    assert "secret" not in str(caught.value)
