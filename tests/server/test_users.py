"""Users with passwords, through real sockets: who gets in, as whom, and what others are told."""

import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "interop"))

import brokers
from ports import free_port

from lockkeeper.client import connect
from lockkeeper.client.errors import RefusedError, SecurityError
from lockkeeper.message import openwire
from lockkeeper.message.openwire import ConnectionId, ConnectionInfo, SessionInfo, codec_for, encode
from lockkeeper.protocols.openwire.codec import VERSION, offer
from lockkeeper.protocols.openwire.frames import framed
from lockkeeper.protocols.settings import ListenerSettings
from lockkeeper_api.passwords import hashed

RESOURCE = """\
apiVersion: lockkeeper.dev/v1alpha1
kind: Broker
metadata:
  name: orders
spec:
  populateJmsxUserId: true
  scheduler: {enabled: true}
  access:
"""
PASSWORDS = {"anna": "secret of anna", "bob": "secret of bob"}
INVALID = "User name [{}] or password is invalid."


def write_users(secrets: Path, passwords: dict[str, str]) -> None:
    """Replace the file of users as Kubernetes would: at once."""
    secrets.mkdir(exist_ok=True)
    salt = b"of the tests only"
    lines = (f"{name}:{hashed(password, salt)}\n" for name, password in passwords.items())
    fresh = secrets / "users.new"
    fresh.write_text("".join(lines))
    fresh.rename(secrets / "users")


def start(directory: Path, access: str) -> brokers.RunningBroker:
    """Start a broker that asks who its clients are."""
    directory.mkdir(exist_ok=True)
    file = directory / "broker.yaml"
    file.write_text(RESOURCE + access)
    port = free_port()
    command = brokers.lockkeeper_command(directory, port)
    command += ["--file", str(file), "--secrets", str(directory / "secrets")]
    return brokers.RunningBroker("lockkeeper", port, directory, command)


ACCESS = """\
    users:
    - {name: anna, groups: [staff], secretName: anna}
    - {name: bob, secretName: bob}
    permissions:
    - {match: ">", read: [staff], write: [staff], admin: [staff]}
    - {match: NEWS, kind: Topic, read: ["*"], write: [staff], admin: [staff]}
    - {match: LETTERS, write: [bob], read: [staff], admin: [staff, bob]}
"""


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[brokers.RunningBroker]:
    """A broker with two users."""
    directory = tmp_path_factory.mktemp("users")
    write_users(directory / "secrets", {**PASSWORDS, "ghost": "not listed in the resource"})
    running = start(directory, ACCESS)
    yield running
    running.stop()


def test_a_user_sends_and_receives_under_its_own_name(broker: brokers.RunningBroker) -> None:
    with connect(broker.url, user="anna", password="secret of anna") as connection:
        session = connection.session()
        session.producer("TEA").send("two pounds")
        message = session.consumer("TEA").receive(5)
        assert message is not None
        assert (message.body, message.user_id) == ("two pounds", "anna")


@pytest.mark.parametrize(
    ("user", "password", "shown"),
    [
        ("anna", "secret of bob", "anna"),
        ("anna", "", "anna"),
        ("anna", None, "anna"),
        ("anna", "x" * 5000, "anna"),
        ("nobody", "secret of anna", "nobody"),
        ("ghost", "not listed in the resource", "ghost"),
        (None, None, "null"),
        (None, "secret of anna", "null"),
        ("", "", "null"),
    ],
)
def test_everybody_else_is_refused_in_the_same_words(
    user: str | None, password: str | None, shown: str, broker: brokers.RunningBroker
) -> None:
    with pytest.raises(SecurityError) as refusal:
        connect(broker.url, user=user, password=password)
    assert refusal.value.java_class == "java.lang.SecurityException"
    assert refusal.value.java_message == INVALID.format(shown)


def test_an_unknown_name_takes_as_long_as_a_wrong_password(broker: brokers.RunningBroker) -> None:
    def refused_after(user: str, password: str) -> float:
        began = time.perf_counter()
        with pytest.raises(SecurityError):
            connect(broker.url, user=user, password=password)
        return time.perf_counter() - began

    tries = [str(number) for number in range(7)]
    wrong = sorted(refused_after("anna", f"wrong {each}") for each in tries)[3]
    unknown = sorted(refused_after(f"nobody {each}", "wrong") for each in tries)[3]
    assert 0.4 < wrong / unknown < 2.5


def test_who_was_let_in_once_comes_again_without_the_cost(broker: brokers.RunningBroker) -> None:
    def connect_once() -> None:
        connect(broker.url, user="anna", password="secret of anna").close()

    connect_once()
    began = time.perf_counter()
    for _ in range(40):
        connect_once()
    # 40 x 50 ms of hashing alone would be 2 s.
    assert time.perf_counter() - began < 1.5


def test_no_password_is_logged(broker: brokers.RunningBroker) -> None:
    with pytest.raises(SecurityError):
        connect(broker.url, user="anna", password="a password to look for")
    log = broker.log.read_text()
    assert "refused the login of user 'anna'" in log
    assert "password to look for" not in log
    assert "secret of" not in log
    assert "scrypt" not in log


def test_a_user_meets_its_limits(broker: brokers.RunningBroker) -> None:
    with connect(broker.url, user="bob", password="secret of bob") as connection:
        session = connection.session()
        session.producer("LETTERS").send("dear anna")
        with pytest.raises(SecurityError, match="bob is not authorized to write to: queue://TEA"):
            session.producer("TEA")
        with pytest.raises(SecurityError, match="to read from: queue://LETTERS"):
            session.consumer("LETTERS")
        with pytest.raises(SecurityError, match="to create: topic://NEWS"):
            session.consumer("topic://NEWS")
        with pytest.raises(RefusedError, match="to write to: queue://TEA"):
            session.producer().send("psst", destination="TEA")
        with pytest.raises(RefusedError, match="to write to: queue://TEA"):
            later = {"AMQ_SCHEDULED_DELAY": 1}
            session.producer().send("psst, later", destination="TEA", properties=later)
        reply_to = connection.temporary_queue()
        session.producer(reply_to).send("an answer")
        answer = session.consumer(reply_to).receive(5)
        assert answer is not None and answer.body == "an answer"


class Stranger:
    """Speaks OpenWire without having said who it is."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), 10)
        self._socket.sendall(framed(encode(offer(ListenerSettings()))))

    def send(self, *commands: openwire.BaseCommand) -> None:
        self._socket.sendall(b"".join(framed(encode(command)) for command in commands))

    def hear(self, seconds: float = 10) -> list[object]:
        """Return everything it is told until the broker closes the connection."""
        self._socket.settimeout(seconds)
        data, codec = b"", codec_for(VERSION, False)
        while piece := self._socket.recv(65536):
            data += piece
        told: list[object] = []
        while data:
            size = int.from_bytes(data[:4], "big")
            told.append(codec.decode(data[4 : 4 + size])[0])
            data = data[4 + size :]
        return told


def test_nothing_is_done_for_who_has_not_said_who_it_is(broker: brokers.RunningBroker) -> None:
    stranger = Stranger(broker.port)
    recover = openwire.TransactionInfo(
        connection_id=ConnectionId("ID:stranger"),
        type=openwire.TransactionOperation.RECOVER,
        command_id=7,
        response_required=True,
    )
    stranger.send(recover)
    stranger.send(openwire.ActiveMQTextMessage(command_id=8))
    told = stranger.hear()
    refusal = next(each for each in told if isinstance(each, openwire.ExceptionResponse))
    assert refusal.correlation_id == 7
    assert refusal.exception is not None
    assert refusal.exception.message == "User is not authenticated."
    assert isinstance(told[-1], openwire.ConnectionError)


def test_what_follows_at_once_waits_for_the_verdict(broker: brokers.RunningBroker) -> None:
    stranger = Stranger(broker.port)
    identifier = ConnectionId("ID:in-a-hurry")
    session = openwire.SessionId("ID:in-a-hurry", 1)
    stranger.send(
        ConnectionInfo(
            connection_id=identifier,
            user_name="bob",
            password="secret of bob",
            command_id=1,
            response_required=True,
        ),
        SessionInfo(session_id=session, command_id=2, response_required=True),
        openwire.ShutdownInfo(command_id=3),
    )
    told = stranger.hear()
    answers = [each for each in told if isinstance(each, openwire.Response)]
    assert [type(each) for each in answers] == [openwire.Response, openwire.Response]
    assert [each.correlation_id for each in answers] == [1, 2]


def test_who_was_refused_is_parted_with(broker: brokers.RunningBroker) -> None:
    stranger = Stranger(broker.port)
    began = time.monotonic()
    stranger.send(
        ConnectionInfo(
            connection_id=ConnectionId("ID:stays"), user_name="eve", command_id=1,
            response_required=True,
        )
    )  # fmt: skip
    told = stranger.hear()
    assert any(isinstance(each, openwire.ExceptionResponse) for each in told)
    assert 1 < time.monotonic() - began < 6


def test_the_nameless_come_in_only_where_they_may(tmp_path: Path) -> None:
    access = """\
    anonymous: true
    permissions:
    - {match: "HALL.>", read: [anonymous], write: [anonymous], admin: [anonymous]}
"""
    write_users(tmp_path / "secrets", {"anna": "secret of anna"})
    running = start(tmp_path, access)
    try:
        with connect(running.url) as connection:
            session = connection.session()
            session.producer("HALL.A").send("hello")
            message = session.consumer("HALL.A").receive(5)
            assert message is not None and message.user_id is None
            with pytest.raises(SecurityError, match="User anonymous is not authorized"):
                session.producer("CELLAR")
        with pytest.raises(SecurityError):
            connect(running.url, user="anna", password="wrong")
        with (
            connect(running.url, user="anna", password="secret of anna") as connection,
            pytest.raises(SecurityError, match=r"User anna is not .*HALL\.A"),
        ):
            connection.session().producer("HALL.A")
    finally:
        running.stop()
