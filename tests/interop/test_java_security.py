"""The unmodified Java client over TLS, with users and permissions: the same as at ActiveMQ."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import brokers
import certificates
import pytest
from configured_scenarios import SECURED
from ports import free_port

from lockkeeper_api.passwords import hashed

if TYPE_CHECKING:
    from java_scenarios import JavaScenarios

pytestmark = [pytest.mark.interop, pytest.mark.slow]

PASSWORDS = {"anna": "tea", "bob": "coffee"}
STORE_PASSWORD = "changeit"


def _run(*command: object) -> None:
    subprocess.run([*map(str, command)], check=True, capture_output=True, timeout=60)


def _write_secrets(directory: Path, certificate: Path, key: Path) -> None:
    """Write what ours reads."""
    tls = directory / "secrets" / "tls" / "openwire"
    tls.mkdir(parents=True)
    shutil.copy(certificate, tls / "tls.crt")
    shutil.copy(key, tls / "tls.key")
    salt = b"of the tests only"
    lines = (f"{name}:{hashed(password, salt)}\n" for name, password in PASSWORDS.items())
    (directory / "secrets" / "users").write_text("".join(lines))


@pytest.fixture(scope="module", params=["lockkeeper", "activemq"])
def secured_url(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """Return the address of a broker that asks who its clients are, and the trust store."""
    reason = brokers.missing(request.param) or certificates.missing()
    if reason:
        pytest.skip(reason)
    directory = tmp_path_factory.mktemp(request.param)
    authority = certificates.Authority(directory)
    certificate, key = authority.issue("broker")
    trusted = directory / "trusted.p12"
    _run(
        *("keytool", "-importcert", "-noprompt", "-alias", "authority", "-storetype", "PKCS12"),
        *("-file", authority.certificate, "-keystore", trusted, "-storepass", STORE_PASSWORD),
    )
    _run(
        *("openssl", "pkcs12", "-export", "-in", certificate, "-inkey", key),
        *("-out", directory / "broker.p12", "-passout", f"pass:{STORE_PASSWORD}"),
    )
    _write_secrets(directory, certificate, key)
    port = free_port()
    command = brokers.COMMANDS[request.param](directory, port, configuration="security")
    if request.param == "lockkeeper":
        command += ["--secrets", str(directory / "secrets")]
    running = brokers.RunningBroker(request.param, port, directory, command)
    yield f"ssl://127.0.0.1:{port}#{trusted}"
    running.stop()


@pytest.mark.parametrize("scenario", SECURED)
def test_a_java_client_gets_what_it_expects_as_a_user(
    scenario: str, secured_url: str, java_scenarios: "JavaScenarios"
) -> None:
    result = java_scenarios.run(scenario, secured_url)
    assert result["ok"], result["error"]
