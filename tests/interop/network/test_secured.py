"""Bridges to brokers that ask who dials, and over TLS."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import brokers
import certificates
import network_brokers
import pytest
from network_brokers import PATIENCE_SECONDS, Network, bodies, until
from network_scenarios import Way

import lockkeeper.client as client
from lockkeeper_api.passwords import hashed

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(900)]

KINDS = ["ours", "activemq", pytest.param("activemq6", marks=pytest.mark.thorough)]
PASSWORDS = {"anna": "tea", "bridge": "water"}
PLUGIN = """<plugins><simpleAuthenticationPlugin><users>
<authenticationUser username="anna" password="tea" groups="users"/>
<authenticationUser username="bridge" password="water" groups="users"/>
</users></simpleAuthenticationPlugin></plugins>"""


class Guarded:
    """A network whose broker `far` asks for a password; ours dials."""

    def __init__(self, directory: Path, kind: str, password: str, duplex: bool) -> None:
        self.network = Network(directory / "network")
        self.network.add("ours", "near")
        far = self.network.add(kind, "far")
        (directory / "password").write_text(f"{password}\n")
        self.network.bridge(
            "near", "far", duplex=duplex, userName="bridge",
            passwordFile=str(directory / "password"),
        )  # fmt: skip
        far.start = lambda: _start(far, directory)  # type: ignore[method-assign]
        self.network.start()

    def far_session(self) -> client.Session:
        url = self.network["far"].url
        return client.connect(url, user="anna", password="tea", timeout=30).session()


def _start(far: network_brokers.Member, directory: Path) -> None:
    command = network_brokers.COMMANDS[far.kind](far)
    if far.kind == "ours":
        secrets = directory / "secrets"
        secrets.mkdir()
        salt = b"of the tests only"
        lines = (f"{name}:{hashed(word, salt)}\n" for name, word in PASSWORDS.items())
        (secrets / "users").write_text("".join(lines))
        command += ["--secrets", str(secrets)]
    else:
        written = far.directory / "activemq.xml"
        text = written.read_text().replace("<systemUsage>", f"{PLUGIN}<systemUsage>", 1)
        written.write_text(text)
    far.running = brokers.RunningBroker(
        far.kind, far.port, far.directory, command, start_seconds_max=PATIENCE_SECONDS
    )


@pytest.mark.parametrize("duplex", [False, True], ids=["simple", "duplex"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_user_with_a_password_is_let_in(kind: str, duplex: bool, tmp_path: Path) -> None:
    if reason := network_brokers.missing(kind):
        pytest.skip(reason)
    guarded = Guarded(tmp_path, kind, "water", duplex)
    with guarded.network as network:
        way = Way(network, "near", "far")
        name = f"queue://{way.name()}"
        taker = guarded.far_session().consumer(name)
        network.await_demand("near", name)
        way.sender(name).send("x")
        assert bodies(taker, 1, 0.3) == ["x"]
        if duplex:
            back = f"queue://{way.name()}"
            near = network.session("near").consumer(back)
            guarded.far_session().producer(back).send("y")
            assert bodies(near, 1, 0.3) == ["y"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_wrong_password_is_told(kind: str, tmp_path: Path) -> None:
    if reason := network_brokers.missing(kind):
        pytest.skip(reason)
    with Guarded(tmp_path, kind, "wine", False).network as network:
        refused = until(lambda: network["near"].bridges()[0]["failure"], "the bridge is refused")
        assert "password is invalid" in refused
        assert network["near"].bridges()[0]["state"] == "waiting"


@pytest.fixture
def encrypted(tmp_path: Path) -> Iterator[tuple[Network, certificates.Authority]]:
    """Return a network whose broker `far` listens with TLS; `near` does not run yet."""
    if reason := certificates.missing():
        pytest.skip(reason)
    authority = certificates.Authority(tmp_path / "authority")
    certificate, key = authority.issue("far")
    tls = tmp_path / "secrets" / "tls" / "openwire"
    tls.mkdir(parents=True)
    shutil.copy(certificate, tls / "tls.crt")
    shutil.copy(key, tls / "tls.key")
    salt = b"of the tests only"
    lines = (f"{name}:{hashed(word, salt)}\n" for name, word in PASSWORDS.items())
    (tmp_path / "secrets" / "users").write_text("".join(lines))
    with Network(tmp_path / "network") as network:
        near, far = network.add("ours", "near"), network.add("ours", "far")
        far.directory.mkdir(parents=True)
        written = far.directory / "broker.yaml"
        written.write_text(
            "apiVersion: lockkeeper.dev/v1alpha1\nkind: Broker\nmetadata: {name: far}\nspec:\n"
            f"  listeners: [{{name: openwire, port: {far.port}, tls: {{}}}}]\n"
        )
        far.running = brokers.RunningBroker(
            "ours", far.port, far.directory,
            [*brokers.LOCKKEEPER, "broker", "--data", str(far.directory / "data"),
             "-f", str(written), "--secrets", str(tmp_path / "secrets"),
             "--admin", f"127.0.0.1:{far.admin}"],
            start_seconds_max=PATIENCE_SECONDS,
        )  # fmt: skip
        (tmp_path / "password").write_text("water")
        near.connectors.append(
            {
                "uri": f"static:(ssl://127.0.0.1:{far.port})?initialReconnectDelay=200",
                "userName": "bridge",
                "passwordFile": str(tmp_path / "password"),
            }
        )
        yield network, authority


def test_a_trusted_broker_is_bridged_to(
    encrypted: tuple[Network, certificates.Authority],
) -> None:
    network, authority = encrypted
    network["near"].connectors[0]["tls"] = {"caFile": str(authority.certificate)}
    network["near"].start()
    until(lambda: network["near"].bridges()[0]["state"] == "connected", "the bridge is there")
    tls = client.TlsOptions(ca_file=authority.certificate)
    url = f"ssl://127.0.0.1:{network['far'].port}"
    with client.connect(url, user="anna", password="tea", tls=tls, timeout=30) as connection:
        taker = connection.session().consumer("queue://Q")
        network.await_demand("near", "queue://Q")
        network.session("near").producer("queue://Q").send("sealed")
        assert bodies(taker, 1, 0.3) == ["sealed"]


def test_a_broker_that_nobody_vouches_for_is_not(
    encrypted: tuple[Network, certificates.Authority],
) -> None:
    network, _ = encrypted
    network["near"].start()
    refused = until(lambda: network["near"].bridges()[0]["failure"], "the bridge is refused")
    assert "CERTIFICATE_VERIFY_FAILED" in refused
