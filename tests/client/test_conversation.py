"""What the client says on the wire, seen from the other end of the socket."""

import threading
import time
from collections.abc import Callable, Iterator

import pytest
from client_support import Connect
from scripted_peer import ScriptedPeer

from lockkeeper.client import (
    Acknowledge,
    Connection,
    ConnectionFailedError,
    IllegalStateError,
    InvalidClientIdError,
    InvalidDestinationError,
    MessagingError,
    RefusedError,
    ResourceAllocationError,
    SecurityError,
    TransactionInDoubtError,
    connect,
)
from lockkeeper.message import openwire
from lockkeeper.message.bodies import MessageType, encode_body
from lockkeeper.message.destination import queue
from lockkeeper.message.ids import MessageId, ProducerId
from lockkeeper.message.openwire import AckType, TransactionOperation

QUEUE = queue("ORDERS")


class Background:
    """Runs the peer's side of a test, and tells how it went."""

    def __init__(self, work: Callable[[], None]) -> None:
        self._error: BaseException | None = None
        self._work = work
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._work()
        except BaseException as error:
            self._error = error

    def join(self) -> None:
        self._thread.join(20)
        if self._error is not None:
            raise self._error


@pytest.fixture
def peer() -> Iterator[ScriptedPeer]:
    with ScriptedPeer() as listening:
        yield listening


def greet(peer: ScriptedPeer) -> None:
    peer.shake_hands()
    peer.serve_until(openwire.ConnectionInfo)
    peer.send(openwire.Response(correlation_id=1))


def see_off(peer: ScriptedPeer) -> None:
    """Answer everything until the client has gone."""
    try:
        while True:
            peer.answer(peer.read())
    except (EOFError, OSError):
        peer.hang_up()


def dispatch(consumer: openwire.ConsumerInfo, number: int) -> openwire.MessageDispatch:
    producer = ProducerId("ID:peer", 1, 1)
    message = openwire.ActiveMQTextMessage(
        producer_id=producer,
        message_id=MessageId(producer, number, 100 + number),
        destination=QUEUE,
        content=encode_body(MessageType.TEXT, f"text {number}"),
    )
    return openwire.MessageDispatch(
        consumer_id=consumer.consumer_id, destination=QUEUE, message=message
    )


def sessions_of(commands: list[openwire.Structure]) -> list[str]:
    return [type(command).__name__ for command in commands]


def test_tight_encoding_and_cache_are_not_offered(peer: ScriptedPeer) -> None:
    offered: list[openwire.WireFormatInfo] = []

    def serve() -> None:
        offered.append(peer.shake_hands())
        see_off(peer)

    background = Background(serve)
    connect(peer.address).close()
    background.join()
    assert offered[0].properties is not None
    assert offered[0].properties["TightEncodingEnabled"] is False
    assert offered[0].properties["CacheEnabled"] is False


@pytest.mark.parametrize("version", [1, 5, 9, 11])
def test_a_broker_of_a_lower_version_is_understood(version: int) -> None:
    with ScriptedPeer(version) as peer:
        acks: list[openwire.Structure] = []

        def serve() -> None:
            greet(peer)
            *_, info = peer.serve_until(openwire.ConsumerInfo)
            peer.answer(info)
            assert isinstance(info, openwire.ConsumerInfo)
            peer.send(dispatch(info, 1))
            acks.extend(peer.serve_until(openwire.MessageAck))
            see_off(peer)

        background = Background(serve)
        with connect(peer.address) as connection:
            message = connection.session().consumer("ORDERS").receive(10)
            assert message is not None
            assert message.body == "text 1"
            assert message.message_id == "ID:peer:1:1:1"
        background.join()
        (ack,) = acks
        assert isinstance(ack, openwire.MessageAck)
        assert ack.ack_type == AckType.STANDARD


BLOB_OPTION = "?jms.blobTransferPolicy."


@pytest.mark.parametrize(
    ("options", "of_broker", "url"),
    [
        ("", None, "http://localhost:8080/uploads/"),
        ("", "https://blobs/", "https://blobs/"),
        (f"{BLOB_OPTION}brokerUploadUrl=http://mine", "https://blobs/", "https://blobs/"),
        (f"{BLOB_OPTION}brokerUploadUrl=http://mine", None, "http://mine"),
        (f"{BLOB_OPTION}defaultUploadUrl=file:///mine", None, "file:///mine"),
        (f"{BLOB_OPTION}defaultUploadUrl=file:///mine", "https://blobs/", "https://blobs/"),
        (f"{BLOB_OPTION}uploadUrl=file:///mine", "https://blobs/", "file:///mine"),
    ],
)
def test_a_broker_tells_where_blobs_go_unless_the_url_says_it(
    peer: ScriptedPeer, options: str, of_broker: str | None, url: str
) -> None:
    def serve() -> None:
        peer.shake_hands()
        peer.send(openwire.BrokerInfo(broker_upload_url=of_broker))
        see_off(peer)

    background = Background(serve)
    with connect(f"{peer.address}{options}") as connection:
        assert connection.session().blob_upload_url == url
    background.join()


def test_a_broker_does_not_choose_a_file_of_this_machine(
    peer: ScriptedPeer, open_connection: Connect
) -> None:
    reported: list[MessagingError] = []

    def serve() -> None:
        greet(peer)
        peer.answer(peer.serve_until(openwire.ConsumerInfo)[-1])
        peer.send(openwire.BrokerInfo(broker_upload_url="file:///etc"))
        see_off(peer)

    background = Background(serve)
    connection = open_connection(peer.address)
    connection.on_error = reported.append
    session = connection.session()
    session.consumer("ORDERS")
    while not reported:
        time.sleep(0.01)
    assert session.blob_upload_url == "http://localhost:8080/uploads/"
    connection.close()
    background.join()
    assert "'file:///etc' is not followed: only http and https are" in str(reported[0])


def test_everything_is_said_again_to_the_next_broker_with_its_old_number(
    peer: ScriptedPeer, open_connection: Connect
) -> None:
    before: list[openwire.Structure] = []
    after: list[openwire.Structure] = []

    def serve() -> None:
        peer.shake_hands()
        before.extend(peer.serve_until(openwire.ActiveMQTextMessage))
        peer.hang_up()
        peer.shake_hands()
        after.extend(peer.serve_until(openwire.ActiveMQTextMessage))
        peer.answer(after[-1])
        see_off(peer)

    background = Background(serve)
    connection = open_connection(f"failover:({peer.address})")
    answers = connection.temporary_queue()
    session = connection.session()
    session.producer("GONE").close()
    session.consumer(answers)
    message_id = session.producer("ORDERS").send("in progress")
    connection.close()
    background.join()

    assert sessions_of(after) == [
        "ConnectionControl",
        "ConnectionInfo",
        "DestinationInfo",
        "SessionInfo",
        "ProducerInfo",
        "ConsumerInfo",
        "ActiveMQTextMessage",
    ]
    control, info, *rest = after
    assert isinstance(control, openwire.ConnectionControl)
    assert isinstance(info, openwire.ConnectionInfo)
    assert (control.fault_tolerant, control.command_id) == (True, 0)
    assert (info.failover_reconnect, info.command_id) == (True, 1)
    assert all(command in before for command in rest)
    message = rest[-1]
    assert isinstance(message, openwire.Message)
    assert str(message.message_id) == message_id


def test_a_commit_without_an_answer_is_in_doubt_and_not_repeated(
    peer: ScriptedPeer, open_connection: Connect
) -> None:
    after: list[openwire.Structure] = []

    def serve() -> None:
        greet(peer)
        while True:
            command = peer.read()
            if (
                isinstance(command, openwire.TransactionInfo)
                and command.type == TransactionOperation.COMMIT_ONE_PHASE
            ):
                break
            peer.answer(command)
        peer.hang_up()
        peer.shake_hands()
        after.extend(peer.serve_until(openwire.RemoveInfo))
        peer.answer(after[-1])
        see_off(peer)

    background = Background(serve)
    connection = open_connection(f"failover:({peer.address})")
    session = connection.session(transacted=True)
    session.producer("ORDERS").send("perhaps")
    with pytest.raises(TransactionInDoubtError):
        session.commit()
    while connection.address is None:
        time.sleep(0.01)
    connection.close()
    background.join()
    assert not any(isinstance(command, openwire.TransactionInfo) for command in after)


def test_a_transaction_of_sends_goes_out_in_one_piece(
    peer: ScriptedPeer, open_connection: Connect
) -> None:
    sizes: list[int] = []

    def serve() -> None:
        greet(peer)
        peer.answer(peer.serve_until(openwire.ProducerInfo)[-1])
        data = peer.connection.recv(1_000_000)
        sizes.append(data.count(b"one of ten"))
        peer.hang_up()

    background = Background(serve)
    session = open_connection(peer.address).session(transacted=True)
    producer = session.producer("ORDERS")
    for _ in range(10):
        producer.send("one of ten")
    with pytest.raises(MessagingError):
        session.commit()
    background.join()
    assert sizes == [10]


def test_signs_of_life_are_sent_and_expected(open_connection: Connect) -> None:
    with ScriptedPeer(inactivity=400) as peer:
        seen: list[openwire.Structure] = []

        def serve() -> None:
            greet(peer)
            peer.answer(peer.serve_until(openwire.ConsumerInfo)[-1])
            for _ in range(6):
                time.sleep(0.1)
                peer.send(openwire.KeepAliveInfo())
            seen.append(peer.read())

        background = Background(serve)
        consumer = open_connection(peer.address).session().consumer("ORDERS")
        began = time.monotonic()
        with pytest.raises(ConnectionFailedError, match="silent"):
            consumer.receive(10)
        assert 0.6 < time.monotonic() - began < 3
        background.join()
        assert sessions_of(seen) == ["KeepAliveInfo"]


def test_a_sign_of_life_is_answered_when_the_broker_asks(
    peer: ScriptedPeer, open_connection: Connect
) -> None:
    seen: list[openwire.Structure] = []

    def serve() -> None:
        greet(peer)
        peer.send(openwire.KeepAliveInfo(response_required=True))
        seen.append(peer.read())
        see_off(peer)

    background = Background(serve)
    connection = open_connection(peer.address)
    while not seen:
        time.sleep(0.01)
    connection.close()
    background.join()
    assert isinstance(seen[0], openwire.KeepAliveInfo)
    assert not seen[0].response_required


@pytest.mark.parametrize(
    ("java_class", "kind"),
    [
        ("java.lang.SecurityException", SecurityError),
        ("javax.jms.JMSSecurityException", SecurityError),
        ("jakarta.jms.InvalidClientIDException", InvalidClientIdError),
        ("javax.jms.InvalidDestinationException", InvalidDestinationError),
        ("javax.jms.ResourceAllocationException", ResourceAllocationError),
        ("java.lang.NullPointerException", RefusedError),
    ],
)
def test_a_refusal_keeps_its_java_class_and_message(
    peer: ScriptedPeer, java_class: str, kind: type[RefusedError]
) -> None:
    def serve() -> None:
        peer.shake_hands()
        peer.refuse(peer.read(), java_class, "not you")
        see_off(peer)

    background = Background(serve)
    with pytest.raises(RefusedError) as caught:
        connect(peer.address)
    background.join()
    assert type(caught.value) is kind
    assert (caught.value.java_class, caught.value.java_message) == (java_class, "not you")


def test_what_the_next_broker_refuses_ends_its_consumer_only(
    peer: ScriptedPeer, open_connection: Connect
) -> None:
    def serve() -> None:
        greet(peer)
        peer.answer(peer.serve_until(openwire.ConsumerInfo)[-1])
        peer.hang_up()
        peer.shake_hands()
        *_, info = peer.serve_until(openwire.ConsumerInfo)
        peer.refuse(info, "javax.jms.InvalidDestinationException", "not here")
        see_off(peer)

    background = Background(serve)
    connection = open_connection(f"failover:({peer.address})")
    consumer = connection.session().consumer("ORDERS")
    with pytest.raises(InvalidDestinationError, match="not here"):
        consumer.receive(10)
    connection.session().producer("ORDERS")
    connection.close()
    background.join()


def test_the_broker_may_close_a_consumer_and_report_errors(
    peer: ScriptedPeer, open_connection: Connect
) -> None:
    def serve() -> None:
        greet(peer)
        *_, info = peer.serve_until(openwire.ConsumerInfo)
        peer.answer(info)
        assert isinstance(info, openwire.ConsumerInfo)
        peer.send(
            openwire.ConnectionError(exception=openwire.Throwable("javax.jms.JMSException", "so"))
        )
        peer.send(openwire.ConsumerControl(consumer_id=info.consumer_id, close=True))
        see_off(peer)

    background = Background(serve)
    connection = open_connection(peer.address)
    reported: list[MessagingError] = []
    connection.on_error = reported.append
    consumer = connection.session().consumer("ORDERS")
    with pytest.raises(IllegalStateError, match="the broker closed"):
        consumer.receive(10)
    connection.close()
    background.join()
    assert [str(error) for error in reported] == ["so (javax.jms.JMSException)"]


def test_a_closing_consumer_tells_the_last_message_it_handed_out(
    peer: ScriptedPeer, open_connection: Connect
) -> None:
    removals: list[int] = []

    def serve() -> None:
        greet(peer)
        *_, info = peer.serve_until(openwire.ConsumerInfo)
        peer.answer(info)
        assert isinstance(info, openwire.ConsumerInfo)
        for number in (1, 2, 3):
            peer.send(dispatch(info, number))
        *_, removal = peer.serve_until(openwire.RemoveInfo)
        assert isinstance(removal, openwire.RemoveInfo)
        removals.append(removal.last_delivered_sequence)
        see_off(peer)

    background = Background(serve)
    connection = open_connection(peer.address)
    consumer = connection.session(acknowledge=Acknowledge.INDIVIDUAL).consumer("ORDERS")
    for _ in range(2):
        assert consumer.receive(10) is not None
    consumer.close()
    connection.close()
    background.join()
    assert removals == [102]


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "frame"),
        (b"\x00\x00\x00\x02\x01\x00", "WireFormatInfo"),
        (b"\x00\x00\x00\x01\xc8", "unknown type 200"),
        (b"\x7f\xff\xff\xff", "frame"),
        (b"", "closed|reset"),
    ],
)
def test_a_peer_that_speaks_something_else_is_refused(
    peer: ScriptedPeer, said: bytes, reason: str
) -> None:
    def serve() -> None:
        peer.accept()
        peer.connection.recv(1)
        peer.connection.sendall(said)
        peer.hang_up()

    background = Background(serve)
    with pytest.raises(ConnectionFailedError, match=reason):
        connect(peer.address)
    background.join()


def test_a_peer_that_says_nothing_is_not_waited_for(peer: ScriptedPeer) -> None:
    background = Background(peer.accept)
    with pytest.raises(ConnectionFailedError, match="does not answer"):
        connect(f"{peer.address}?connectionTimeout=200")
    background.join()


def test_blocking_calls_end_when_the_connection_is_closed(
    peer: ScriptedPeer, open_connection: Connect
) -> None:
    def serve() -> None:
        greet(peer)
        see_off(peer)

    background = Background(serve)
    connection: Connection = open_connection(peer.address)
    consumer = connection.session().consumer("ORDERS")
    threading.Timer(0.2, connection.close).start()
    assert consumer.receive() is None
    background.join()
    with pytest.raises(IllegalStateError, match="closed"):
        connection.session()
