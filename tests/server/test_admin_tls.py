"""The admin endpoint of a pod over TLS: a real broker, asked by what the operator asks with."""

import asyncio
import urllib.error
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil
import pytest
from pods import Pod, wait_until
from ports import free_port

from lockkeeper_operator.certificates.issuing import Pair, issued, new_authority
from lockkeeper_operator.polling.admin_endpoint import (
    Address,
    AdminEndpoints,
    BrokerRefusedError,
    BrokerSilentError,
)

StartPod = Callable[..., Pod]
NOW = datetime.now(UTC)
NAME = "orders-replicas.shop.svc.cluster.local"
AUTHORITY = new_authority("own", NOW)


def install(secrets: Path, pair: Pair) -> None:
    """Put a certificate where a broker looks for it, as a kubelet does."""
    directory = secrets / "admin-tls"
    directory.mkdir(exist_ok=True)
    for name, text in (("tls.crt", pair.certificate), ("tls.key", pair.key)):
        fresh = directory / f".{name}"
        fresh.write_text(text)
        fresh.rename(directory / name)


@pytest.fixture
def secrets(tmp_path: Path) -> Path:
    directory = tmp_path / "secrets"
    directory.mkdir()
    (directory / "admin-token").write_text("s3cret")
    return directory


def ask(pod: Pod, port: int, authorities: str, host: str = "127.0.0.1") -> dict[str, Any]:
    """Return the status that a broker tells whoever asks as the operator does."""

    async def main() -> dict[str, Any]:
        admin = AdminEndpoints()
        admin.trust(authorities)
        try:
            secure = port != pod.admin_port
            return await admin.status(Address(host, port, "s3cret", NAME if secure else ""))
        finally:
            await admin.close()

    return asyncio.run(main())


def started(start_pod: StartPod, secrets: Path) -> tuple[Pod, int]:
    """Return a broker on all addresses, which serves, and the port with TLS."""
    tls_port, port = free_port(), free_port()
    admin = f"  admin: {{host: 0.0.0.0, port: {port}, tlsPort: {tls_port}}}"
    pod = start_pod(secrets=secrets, admin_port=port, admin_spec=admin)
    wait_until(lambda: "is master" in pod.log.read_text())
    return pod, tls_port


def own_address() -> str:
    """Return an address of this machine that is not its loopback's."""
    found = [
        each.address
        for all in psutil.net_if_addrs().values()
        for each in all
        if "." in each.address and not each.address.startswith("127.")
    ]
    if not found:
        pytest.skip("this machine has loopback alone")
    return found[0]


def test_the_operator_asks_over_tls(start_pod: StartPod, secrets: Path) -> None:
    install(secrets, issued(AUTHORITY, [NAME], NOW))
    pod, tls_port = started(start_pod, secrets)
    assert ask(pod, tls_port, AUTHORITY.certificate)["role"] == "master"
    stranger = new_authority("own", NOW)
    with pytest.raises(BrokerSilentError, match="CERTIFICATE_VERIFY_FAILED"):
        ask(pod, tls_port, stranger.certificate)


def test_without_tls_the_api_is_for_who_asks_from_within_the_pod(
    start_pod: StartPod, secrets: Path
) -> None:
    outside = own_address()
    install(secrets, issued(AUTHORITY, [NAME], NOW))
    pod, tls_port = started(start_pod, secrets)
    assert ask(pod, tls_port, AUTHORITY.certificate, outside)["role"] == "master"
    with pytest.raises(BrokerRefusedError, match="403 ask over TLS"):
        ask(pod, pod.admin_port, "", outside)
    # As `kubectl port-forward` and a shell in the pod come, and probes and Prometheus.
    assert pod.ask("/api/v1/status", "s3cret")["role"] == "master"
    pod.host = outside
    assert pod.ask("/healthz") == {"status": "ok"}
    with pytest.raises(urllib.error.HTTPError, match="403"):
        pod.ask("/api/v1/status", "s3cret")


def test_a_renewed_certificate_is_shown_without_a_restart(
    start_pod: StartPod, secrets: Path
) -> None:
    install(secrets, issued(AUTHORITY, [NAME], NOW))
    pod, tls_port = started(start_pod, secrets)
    process, renewed = pod.process.pid, new_authority("own", NOW)
    install(secrets, issued(renewed, [NAME], NOW))

    def is_taken() -> bool:
        try:
            return bool(ask(pod, tls_port, renewed.certificate)["pid"] == process)
        except BrokerSilentError:
            return False

    wait_until(is_taken, 15)
    # What is of no use changes nothing, and is told.
    install(secrets, Pair(AUTHORITY.certificate, "no key"))
    wait_until(lambda: ask(pod, tls_port, renewed.certificate)["secretsRefused"], 15)


def test_a_certificate_that_is_of_no_use_keeps_no_broker_from_serving(
    start_pod: StartPod, secrets: Path
) -> None:
    install(secrets, Pair("nonsense", "nonsense"))
    pod, tls_port = started(start_pod, secrets)
    with pytest.raises(BrokerSilentError):
        ask(pod, tls_port, AUTHORITY.certificate)
    install(secrets, issued(AUTHORITY, [NAME], NOW))

    def is_taken() -> bool:
        try:
            return bool(ask(pod, tls_port, AUTHORITY.certificate))
        except BrokerSilentError:
            return False

    wait_until(is_taken, 15)


def test_a_pod_of_an_operator_without_certificates_answers_as_before(
    start_pod: StartPod, secrets: Path
) -> None:
    outside = own_address()
    pod, _ = started(start_pod, secrets)
    assert ask(pod, pod.admin_port, "", outside)["role"] == "master"
