"""Listeners over TLS: who trusts whom, and certificates that change while clients are connected."""

import os
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "interop"))

import brokers
import certificates
from secured import HEADER, Login, Secured, eventually, replace

from lockkeeper.client import ConnectionFailedError, TlsOptions, connect
from lockkeeper.server.certificates import encryption
from lockkeeper_api.broker import Listener
from lockkeeper_api.cluster.exposure import Tls

pytestmark = pytest.mark.skipif(certificates.missing() is not None, reason="there is no openssl")

ANNA: Login = {"user": "anna", "password": "tea"}
SPEC = """\
  listeners:
  - name: openwire-tls
    port: PORT
    tls: {{secretName: certificate, clientCertificates: {clients}}}
  access:
    users: [{{name: anna, secretName: anna}}]
"""


def install(running: Secured, pair: tuple[Path, Path], authority: Path | None = None) -> None:
    """Put a certificate with its key where the broker looks for it."""
    directory = running.secrets / "tls" / "openwire-tls"
    directory.mkdir(parents=True, exist_ok=True)
    for name, source in zip(("tls.crt", "tls.key"), pair, strict=True):
        replace(directory / name, source.read_text())
    if authority is not None:
        replace(directory / "ca.crt", authority.read_text())


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> certificates.Authority:
    return certificates.Authority(tmp_path_factory.mktemp("authority"))


def start(directory: Path, authority: certificates.Authority, clients: str = "Ignored") -> Secured:
    def prepare(running: Secured) -> None:
        install(running, authority.issue("broker"), authority.certificate)

    return Secured(directory, SPEC.format(clients=clients), {"anna": "tea"}, prepare, listens=False)


@pytest.fixture(scope="module")
def broker(
    authority: certificates.Authority, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Secured]:
    running = start(tmp_path_factory.mktemp("tls") / "broker", authority)
    yield running
    running.running.stop()


def secure(broker: Secured) -> str:
    return f"ssl://127.0.0.1:{broker.port}"


def shown_by(broker: Secured) -> bytes:
    """Return the certificate that the listener shows."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with (
        socket.create_connection(("127.0.0.1", broker.port), 10) as raw,
        context.wrap_socket(raw) as secured,
    ):
        shown = secured.getpeercert(binary_form=True)
        assert shown is not None
        return shown


def der(certificate: Path) -> bytes:
    return ssl.PEM_cert_to_DER_cert(certificate.read_text())


def test_messages_of_any_size_pass(broker: Secured, authority: certificates.Authority) -> None:
    url = f"{secure(broker)}?ssl.caFile={authority.certificate}"
    sizes = [1, 16_383, 16_384, 16_385, 300_000, 3_000_000]
    with connect(url, **ANNA) as connection:
        session = connection.session()
        consumer, producer = session.consumer("SIZES"), session.producer("SIZES")
        for size in sizes:
            producer.send(b"x" * size, persistent=False)
        bodies = [message.body for message in map(consumer.receive, [20] * 6) if message]
        assert [len(body) for body in bodies if isinstance(body, bytes)] == sizes
        assert connection.address == secure(broker)


def test_a_failover_url_finds_it_and_brings_user_and_password(
    broker: Secured, authority: certificates.Authority
) -> None:
    url = f"failover:({secure(broker)})?jms.userName=anna&jms.password=tea"
    with connect(url, tls=TlsOptions(ca_file=authority.certificate)) as connection:
        connection.session().producer("Q").send("tea")


def test_a_broker_that_nobody_vouches_for_is_not_trusted(broker: Secured) -> None:
    with pytest.raises(ConnectionFailedError, match=r"(?i)certificate.verify.failed"):
        connect(secure(broker), **ANNA)


def test_a_certificate_is_for_its_host_only(
    authority: certificates.Authority, tmp_path: Path, broker: Secured
) -> None:
    url = f"ssl://localhost:{broker.port}?ssl.caFile={authority.certificate}"
    with pytest.raises(ConnectionFailedError, match="not valid for 'localhost'"):
        connect(url, **ANNA)
    connect(f"{url}&socket.verifyHostName=false", **ANNA).close()


def test_who_speaks_no_tls_gets_nothing_and_leaves_no_traceback(broker: Secured) -> None:
    with pytest.raises(ConnectionFailedError):
        connect(f"tcp://127.0.0.1:{broker.port}?connectionTimeout=2000", **ANNA)
    assert "Traceback" not in broker.running.log.read_text()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_old_tls_is_refused(broker: Secured) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_ciphers("ALL:@SECLEVEL=0")
    context.minimum_version = ssl.TLSVersion.TLSv1
    context.maximum_version = ssl.TLSVersion.TLSv1_1
    with (
        socket.create_connection(("127.0.0.1", broker.port), 10) as raw,
        pytest.raises((ssl.SSLError, ConnectionResetError)),
    ):
        context.wrap_socket(raw)


def test_a_new_certificate_is_shown_without_disturbing_anybody(
    broker: Secured, authority: certificates.Authority
) -> None:
    url = f"{secure(broker)}?ssl.caFile={authority.certificate}"
    with connect(url, **ANNA) as connection:
        consumer = connection.session().consumer("STAYS")
        renewed = authority.issue("renewed")
        install(broker, renewed)
        eventually(lambda: shown_by(broker) == der(renewed[0]))
        connection.session().producer("STAYS").send("still here")
        message = consumer.receive(10)
        assert message is not None and message.body == "still here"
        assert not message.redelivered
    connect(url, **ANNA).close()


def test_a_bad_certificate_leaves_the_old_one_and_is_told(
    broker: Secured, authority: certificates.Authority
) -> None:
    good = authority.issue("good")
    install(broker, good)
    eventually(lambda: shown_by(broker) == der(good[0]))
    install(broker, (authority.issue("one")[0], authority.issue("other")[1]))
    (refused,) = eventually(lambda: broker.status()["secretsRefused"])
    assert "tls.crt" in refused and "the key is not that of the certificate" in refused
    assert "the previous version stays in use" in broker.running.log.read_text()
    assert shown_by(broker) == der(good[0])
    install(broker, good)
    eventually(lambda: not broker.status()["secretsRefused"])


def test_the_command_line_reaches_it_with_nothing_to_see_for_others(
    broker: Secured, authority: certificates.Authority
) -> None:
    environment = os.environ | {
        "LOCKKEEPER_URL": secure(broker),
        "LOCKKEEPER_USER": "anna",
        "LOCKKEEPER_PASSWORD": "tea",
        "LOCKKEEPER_CA_FILE": str(authority.certificate),
    }
    for arguments, said in ((["send", "CLI", "hello"], "ID:"), (["receive", "CLI"], "hello")):
        done = subprocess.run(
            [*brokers.LOCKKEEPER, *arguments],
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert (done.returncode, said in done.stdout) == (0, True), done.stderr


def test_clients_show_certificates_where_they_must(
    authority: certificates.Authority, tmp_path: Path
) -> None:
    broker = start(tmp_path / "broker", authority, "Required")
    stranger = certificates.Authority(tmp_path / "other", "other")
    try:
        for pair in (None, stranger.issue("anna")):
            shown = TlsOptions(authority.certificate, *(pair or ()))
            with pytest.raises(ConnectionFailedError):
                connect(f"{secure(broker)}?connectionTimeout=5000", tls=shown, **ANNA)
        mine = TlsOptions(authority.certificate, *authority.issue("anna"))
        connect(secure(broker), tls=mine, **ANNA).close()
        # Nobody whom only the authority of before vouches for comes in any more.
        install(broker, authority.issue("broker"), stranger.certificate)
        theirs = TlsOptions(authority.certificate, *stranger.issue("anna"))

        def is_let_in() -> bool:
            try:
                connect(f"{secure(broker)}?connectionTimeout=5000", tls=theirs, **ANNA).close()
            except ConnectionFailedError:
                return False
            return True

        eventually(is_let_in)
        with pytest.raises(ConnectionFailedError):
            connect(f"{secure(broker)}?connectionTimeout=5000", tls=mine, **ANNA)
    finally:
        broker.running.stop()


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda directory: (directory / "tls.key").unlink(), "No such file"),
        (lambda directory: (directory / "tls.crt").write_text("tea"), "it is no PEM"),
    ],
)
def test_a_broker_without_its_certificate_does_not_start(
    damage: object, reason: str, authority: certificates.Authority, tmp_path: Path
) -> None:
    directory = tmp_path / "secrets" / "tls" / "openwire-tls"
    directory.mkdir(parents=True)
    certificate, key = authority.issue("broker")
    (directory / "tls.crt").write_text(certificate.read_text())
    (directory / "tls.key").write_text(key.read_text())
    damage(directory)  # type: ignore[operator]
    done = run_broker(tmp_path, "--secrets", str(tmp_path / "secrets"))
    assert done.returncode == 1
    (said,) = [line for line in done.stderr.splitlines() if line.startswith("lockkeeper: ")]
    assert "tls.crt" in said and reason in said
    assert not list((tmp_path / "data").glob("db-*"))


def test_without_secrets_a_local_process_leaves_it_out_and_says_so(
    caplog: pytest.LogCaptureFixture,
) -> None:
    listener = Listener(name="openwire-tls", tls=Tls(secret_name="certificate"))
    assert encryption(listener, None) is None
    assert "listener openwire-tls: no --secrets, so its tls is left out" in caplog.text


def run_broker(directory: Path, *options: str) -> "subprocess.CompletedProcess[str]":
    file = directory / "broker.yaml"
    text = SPEC.format(clients="Ignored").replace("PORT", "0")
    file.write_text(HEADER + text + "  admin: {port: 0}\n")
    command = [*brokers.LOCKKEEPER, "broker", "--file", str(file)]
    command += ["--data", str(directory / "data"), *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_handshakes_of_tls_that_never_end_keep_nobody_out(
    authority: certificates.Authority, tmp_path: Path
) -> None:
    def prepare(running: Secured) -> None:
        install(running, authority.issue("broker"), authority.certificate)

    spec = SPEC.format(clients="Ignored").replace(
        "port: PORT", "port: PORT\n    loginTimeout: 2s\n    connectionsBeforeLoginMax: 3"
    )
    broker = Secured(tmp_path / "slow", spec, {"anna": "tea"}, prepare, listens=False)
    try:
        silent = [socket.create_connection(("127.0.0.1", broker.port), 10) for _ in range(10)]
        url = f"{secure(broker)}?ssl.caFile={authority.certificate}"
        with connect(url, **ANNA) as connection:
            connection.session().producer("Q").send("in between")
            eventually(lambda: [each.recv(1) for each in silent] == [b""] * 10)
            connection.session().producer("Q").send("still there")
    finally:
        broker.running.stop()
