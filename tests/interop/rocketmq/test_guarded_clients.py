"""Unmodified RocketMQ clients over TLS, as users: what they may do, and what else they are told."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

import certificates
import guarded
import java_project
import pytest
from brokers import RunningBroker
from certificates import Authority
from guarded import JavaClients, trusting

pytestmark = [pytest.mark.interop, pytest.mark.slow]

VERSIONS = [
    pytest.param("4.9.8", id="4.9.8"),
    pytest.param("5.3.3", id="5.3.3", marks=pytest.mark.thorough),
]
INVALID = "User name [{}] or password is invalid."
NEEDS = "give the user as access key, the password as secret key and as security token"
# A client does not hear that its connection was closed: its requests wait for as long as they may.
HASTY = "-Dguarded.timeout=2000"
START: TypeAlias = Callable[..., JavaClients]


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    reason = java_project.missing() or certificates.missing()
    if reason:
        pytest.skip(reason)
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def broker(
    authority: Authority, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningBroker]:
    running = guarded.start_guarded(tmp_path_factory.mktemp("broker"), authority)
    yield running
    running.kill()


@pytest.fixture(scope="module", params=VERSIONS)
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def clients(
    version: str,
    broker: RunningBroker,
    authority: Authority,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[JavaClients]:
    """Return clients that trust the broker's authority; the topic `letters` has a message."""
    directory = tmp_path_factory.mktemp("clients")
    program = JavaClients(version, broker.port, directory, *trusting(authority))
    assert program.act("create", "letters", "anna", "tea") == "created"
    assert program.act("send", "letters", "anna", "tea") == "SEND_OK"
    yield program
    program.stop()


@pytest.fixture
def start(version: str, tmp_path: Path) -> Iterator[START]:
    """Return what starts clients with options of Java at a port."""
    started: list[JavaClients] = []

    def begin(port: int, *options: str) -> JavaClients:
        started.append(JavaClients(version, port, tmp_path / f"{len(started)}", *options))
        return started[-1]

    yield begin
    for program in started:
        program.stop()


@pytest.mark.parametrize(
    ("action", "user", "seen"),
    [
        ("send", "walt", "SEND_OK"),
        ("transact", "walt", "SEND_OK COMMIT_MESSAGE"),
        ("consume", "rita", "consumed hello"),
        ("pull", "rita", "FOUND [hello"),
        ("consume", "anna", "consumed hello"),
    ],
)
def test_a_user_does_what_is_permitted(
    clients: JavaClients, action: str, user: str, seen: str
) -> None:
    assert clients.act(action, "letters", user, guarded.PASSWORDS[user]).startswith(seen)


@pytest.mark.parametrize(
    ("action", "topic", "user", "told"),
    [
        ("send", "letters", "rita", "User rita is not authorized to write to: topic://letters"),
        ("transact", "letters", "rita", "User rita is not authorized to write to: topic://letters"),
        ("send", "letters", "nora", "User nora is not authorized to write to: topic://letters"),
        ("pull", "letters", "walt", "User walt is not authorized to read from: topic://letters"),
        ("create", "fresh", "walt", "User walt is not authorized to create: topic://fresh"),
        ("send", "unheard", "walt", "User walt is not authorized to write to: topic://unheard"),
    ],
)
def test_a_user_is_told_what_is_not_permitted(
    clients: JavaClients, action: str, topic: str, user: str, told: str
) -> None:
    seen = clients.act(action, topic, user, guarded.PASSWORDS[user])
    assert "code 16" in seen
    assert told in seen


def test_who_may_not_read_consumes_nothing(clients: JavaClients) -> None:
    """A push consumer tells its log alone what it is refused."""
    assert clients.act("starve", "letters", "walt", "rum") == "consumed nothing"


@pytest.mark.parametrize("action", ["send", "pull", "create"])
@pytest.mark.parametrize(
    ("given", "told"),
    [
        (("anna", "wrong"), INVALID.format("anna")),
        (("nobody", "tea"), INVALID.format("nobody")),
        (("anna", "tea", "wrong"), INVALID.format("anna")),
        (("anna", "wrong", "tea"), "the signature is not that of the user's password"),
        (("anna", "tea", guarded.NOTHING), f"the user anna gives no password: {NEEDS}"),
        ((), f"the request names no user: {NEEDS}"),
    ],
    ids=["wrong", "unknown", "wrong token", "wrong secret", "no token", "nothing"],
)
def test_who_is_not_known_is_told_why(
    clients: JavaClients, action: str, given: tuple[str, ...], told: str
) -> None:
    seen = clients.act(action, "letters", *given)
    assert "code 16" in seen
    assert told in seen


def test_a_client_trusts_no_broker_of_another_authority(
    broker: RunningBroker, start: START, tmp_path: Path
) -> None:
    stranger = Authority(tmp_path / "stranger")
    seen = start(broker.port, *trusting(stranger), HASTY).act("create", "letters", "anna", "tea")
    assert "Remoting" in seen


@pytest.mark.thorough
def test_a_client_without_tls_does_not_come_in(broker: RunningBroker, start: START) -> None:
    seen = start(broker.port, HASTY).act("create", "letters", "anna", "tea")
    assert "Remoting" in seen


@pytest.mark.thorough
def test_clients_show_certificates(
    authority: Authority, version: str, start: START, tmp_path: Path
) -> None:
    certificate, key = authority.issue("client")
    shown = (f"-Dtls.client.certPath={certificate}", f"-Dtls.client.keyPath={key}")
    running = guarded.start_guarded(tmp_path / "broker", authority, "Required")
    try:
        known = start(running.port, *trusting(authority), *shown)
        assert known.act("send", "letters", "anna", "tea") == "SEND_OK"
        unknown = start(running.port, *trusting(authority), HASTY)
        assert "Remoting" in unknown.act("create", "letters", "anna", "tea")
    finally:
        running.kill()
