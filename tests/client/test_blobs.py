"""Blob messages: the URL arrives, and what lies there is read and put with limits."""

import socket
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

import brokers
import pytest
from client_support import Connect, dead_letters, take
from containers import container, serve
from file_server import FileServer, file_server

from lockkeeper.client import Blob, BlobError, Connection, Producer
from lockkeeper.client.blobs import upload

BYTES = bytes(range(256)) * 1000


@pytest.fixture
def server() -> Iterator[FileServer]:
    with file_server() as running:
        yield running


def test_a_blob_arrives_with_all_that_is_said_of_it(
    connection: Connection, queue_name: str
) -> None:
    blob = Blob("https://example.org/a%20film.mp4?size=1#end", "video/mp4", True)
    session = connection.session()
    message_id = session.producer(queue_name).send(
        blob, {"it": "is"}, type="film", correlation_id="c", priority=7
    )
    message = session.consumer(queue_name).receive(5)
    assert message is not None
    assert (message.blob, message.body, message.message_id) == (blob, None, message_id)
    assert (message.properties, message.type, message.correlation_id) == ({"it": "is"}, "film", "c")
    assert (message.priority, message.persistent) == (7, True)


def test_a_blob_is_sent_within_a_transaction_and_forwarded(
    connection: Connection, queue_name: str
) -> None:
    session = connection.session(transacted=True)
    session.producer(queue_name).send(Blob("http://example.org/1"))
    session.rollback()
    session.producer(queue_name).send(Blob("http://example.org/2"))
    session.commit()
    consumer, producer = session.consumer(queue_name), session.producer(f"{queue_name}.NEXT")
    message = consumer.receive(5)
    assert message is not None
    producer.forward(message)
    session.commit()
    forwarded = session.consumer(f"{queue_name}.NEXT").receive(5)
    assert forwarded is not None
    assert forwarded.blob == Blob("http://example.org/2", "application/octet-stream", False)


def test_a_function_of_a_listener_container_takes_and_returns_blobs(
    broker: brokers.RunningBroker, connection: Connection, queue_name: str
) -> None:
    session = connection.session()
    producer = session.producer(queue_name)
    producer.send("no blob")
    producer.send(Blob("http://example.org/1"))

    def function(blob: Blob) -> Blob:
        return Blob(f"{blob.url}.zip", "application/zip")

    made = container(function, broker.url, queue_name, send_to=f"{queue_name}.ZIPPED")
    serve(made, lambda: made.counters.processed == made.counters.invalid == 1)
    message = session.consumer(f"{queue_name}.ZIPPED").receive(5)
    assert message is not None
    assert message.blob == Blob("http://example.org/1.zip", "application/zip")
    (letter,) = dead_letters(connection, queue_name)
    assert "no Blob: it is a text" in str(letter.properties["dlqDeliveryFailureCause"])


def test_other_messages_have_no_blob(connection: Connection, queue_name: str) -> None:
    session = connection.session()
    producer: Producer = session.producer(queue_name)
    producer.send("text")
    message = session.consumer(queue_name).receive(5)
    assert message is not None and message.blob is None


def test_blobs_are_sent_among_other_bodies(
    broker: brokers.RunningBroker, open_connection: Connect, queue_name: str
) -> None:
    session = open_connection(f"{broker.url}?jms.useCompression=true").session()
    producer: Producer = session.producer(queue_name)
    blob = Blob("http://example.org/", "text/plain", True)
    producer.send_many(["first", blob, "last"])
    received = take(session.consumer(queue_name), 3)
    assert [message.blob for message in received] == [None, blob, None]
    assert [message.body for message in received] == ["first", None, "last"]
    with pytest.raises(ValueError, match="a Blob or None, not int"):
        producer.send(7)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="65535"):
        producer.send(Blob("http://example.org/" + "a" * 65_535))


def test_a_session_uploads_to_where_its_url_says(
    broker: brokers.RunningBroker,
    open_connection: Connect,
    queue_name: str,
    server: FileServer,
    tmp_path: Path,
) -> None:
    (tmp_path / "ä film.mp4").write_bytes(BYTES)
    option = f"jms.blobTransferPolicy.uploadUrl={server.url}uploads"
    session = open_connection(f"{broker.url}?{option}").session()
    session.producer(queue_name).send(
        session.upload(tmp_path / "ä film.mp4", mime_type="video/mp4")
    )
    message = session.consumer(queue_name).receive(5)
    assert message is not None and message.blob is not None
    blob = message.blob
    assert blob.url.startswith(f"{server.url}uploads/")
    assert blob.name.endswith("-ä film.mp4")
    assert (blob.mime_type, blob.deleted_by_broker) == ("video/mp4", True)
    assert list(server.types.values()) == ["video/mp4"]
    assert blob.read() == BYTES


def test_an_open_file_is_uploaded_each_time_under_a_new_name(server: FileServer) -> None:
    blob, other = (upload(BytesIO(b"streamed"), server.url, "text/plain") for _ in range(2))
    assert blob.read(bytes_max=8) == other.read() == b"streamed"
    assert blob.url != other.url


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("http://example.org/a/b.txt", "b.txt"),
        ("http://example.org/a/", ""),
        ("http://example.org", ""),
        ("http://example.org?a=/b", ""),
        ("http://[/b", "b"),
        ("nothing", ""),
    ],
)
def test_the_name_is_the_end_of_the_path(url: str, name: str) -> None:
    assert Blob(url).name == name


def test_a_blob_is_read_piece_by_piece(server: FileServer) -> None:
    server.files["/a"] = BYTES
    with Blob(f"{server.url}a").open() as file:
        assert file.read(1000) == BYTES[:1000]
        assert file.read() == BYTES[1000:]
        assert file.read() == b""


@pytest.mark.parametrize("path", ["a", "without-length"])
def test_no_more_is_read_than_is_allowed(server: FileServer, path: str) -> None:
    server.files[f"/{path}"] = BYTES
    blob = Blob(f"{server.url}{path}")
    assert blob.read(bytes_max=len(BYTES)) == BYTES
    with pytest.raises(BlobError, match="bytes_max"):
        blob.read(bytes_max=len(BYTES) - 1)


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("missing", "404"),
        ("cut", "256000 bytes have not come"),
        ("redirect//a", "302: Found; it has moved to /a"),
    ],
)
def test_what_cannot_be_read_is_told(server: FileServer, path: str, reason: str) -> None:
    server.files["/cut"] = BYTES
    with pytest.raises(BlobError, match=reason) as caught:
        Blob(f"{server.url}{path}").read()
    assert f"{server.url}{path}" in str(caught.value)


@pytest.mark.parametrize(
    "url",
    ["ftp://example.org/a", "jar:file:/x", "relative", "", "http:", "http://127.0.0.1:99999/"],
)
def test_what_is_no_url_of_the_web_is_not_opened(url: str) -> None:
    with pytest.raises(BlobError):
        Blob(url).open()


def test_a_file_is_opened_only_when_that_is_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(BYTES)
    blob = Blob(path.as_uri())
    with pytest.raises(BlobError, match="only http, https is allowed"):
        blob.read()
    assert blob.read(schemes=("file",)) == BYTES
    with pytest.raises(BlobError, match="bytes_max"):
        blob.read(schemes=("file",), bytes_max=5)
    with pytest.raises(BlobError, match="No such file"):
        Blob(f"{path.as_uri()}b").read(schemes=("file",))
    with pytest.raises(ValueError, match=r"never at 'ftp' \(schemes\)"):
        blob.read(schemes=("ftp",))


def test_a_silent_server_is_not_waited_for() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        blob = Blob(f"http://127.0.0.1:{silent.getsockname()[1]}/")
        with pytest.raises(BlobError, match="timed out"):
            blob.open(timeout=0.05)


def test_a_file_that_is_open_as_text_is_refused(server: FileServer, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("\N{LATIN SMALL LETTER E WITH ACUTE}", "utf-8")
    refused = pytest.raises(ValueError, match="open it with 'rb'")
    with (tmp_path / "a").open(encoding="utf-8") as file, refused:
        upload(file, server.url, "text/plain")  # type: ignore[arg-type]
    assert server.files == {}


def test_a_file_that_is_not_taken_is_told(server: FileServer, tmp_path: Path) -> None:
    url = f"{server.url}forbidden/"
    with pytest.raises(BlobError, match=r"PUT .*403"):
        upload(BytesIO(b"x"), url, "text/plain")
    with pytest.raises(FileNotFoundError):
        upload(tmp_path / "missing", url, "text/plain")
    with pytest.raises(BlobError, match="only http, https, file is allowed"):
        upload(BytesIO(b"x"), "ftp://127.0.0.1/", "text/plain")
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(BlobError, match=r"was not written: .*file"):
        upload(BytesIO(b"x"), (tmp_path / "file").as_uri(), "text/plain")


def test_a_file_is_copied_into_a_directory_that_is_made(tmp_path: Path) -> None:
    (tmp_path / "ä film.mp4").write_bytes(BYTES)
    directory = tmp_path / "made here" / "as well"
    blob, other = (
        upload(tmp_path / "ä film.mp4", directory.as_uri(), "video/mp4") for _ in range(2)
    )
    assert blob.url != other.url
    assert len([*directory.iterdir()]) == 2
    assert (blob.name.endswith("-ä film.mp4"), blob.deleted_by_broker) == (True, True)
    assert blob.read(schemes=("file",)) == BYTES
