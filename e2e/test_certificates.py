"""Certificates of listeners: trusted by clients, renewed while they are connected.

The operator begins to renew one when two thirds of its life are over. The test puts one in the
Secret's place that the same authority signed 61 days ago, of 90: nobody waits for two months.
cert-manager is told to renew one, as its own command line does it.
"""

import json
import time
from base64 import b64decode, b64encode
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from brokers import Brokers, broker
from clients import AUTHORITY, Client, Clients, assert_nothing_lost, gap
from cryptography import x509
from foreign_kinds import BUILD_SECONDS_MAX, need_cert_manager
from installation import RELEASE, Installation
from kube import Manifest, Namespace, wait_until
from measures import record_gap

from lockkeeper_operator.certificates.issuing import Pair, issued

SECRET = "orders-openwire-tls"
PORT = 61616
AGE = timedelta(days=61)
LEFT_MIN = timedelta(days=89)
GAP_SECONDS_MAX = 2.0
AFTERWARDS_SECONDS = 3.0
SHOWN_SECONDS_MAX = 150.0
"""A kubelet writes a changed Secret into pods once in a minute or two."""

SHOWN = f"""
import socket, ssl, sys
host, trusted = sys.argv[1:]
context = ssl.create_default_context(cafile=trusted or None)
with socket.create_connection((host, {PORT}), timeout=5) as plain:
    try:
        with context.wrap_socket(plain, server_hostname=host) as secure:
            print(ssl.DER_cert_to_PEM_cert(secure.getpeercert(True)))
    except ssl.SSLCertVerificationError as error:
        print(error.verify_message)
"""
"""Prints the certificate that is shown at the host, or why it is not trusted."""

CONNECTIONS = f"""
from pathlib import Path
lines = [line.split() for line in Path("/proc/1/net/tcp").read_text().splitlines()[1:]]
print(*sorted(words[1] for words in lines if words[2].endswith(":{PORT:04X}") and words[3] == "01"))
"""
"""Prints the own ends of the connections to brokers."""


def test_a_certificate_is_renewed_before_its_end_and_nobody_is_disconnected(
    installation: Installation, brokers: Brokers, clients: Clients
) -> None:
    namespace = brokers.namespace
    namespace.apply(broker(brokers.name, listeners=[{"name": "openwire", "tls": {}}]))
    brokers.wait_settled()
    users = replace(clients, tls=True)
    sender, receiver = users.start("send", "SEALED"), users.start("receive", "SEALED")
    first = _pair(namespace, SECRET)
    assert _shown(sender) == first.certificate
    assert "self-signed" in _shown(sender, trusted="") or "unable" in _shown(sender, trusted="")
    connections = [client.run(CONNECTIONS) for client in (sender, receiver)]
    assert [len(ends.split()) for ends in connections] == [1, 1]
    lives, began = brokers.lives(), time.time()

    aged = _aged(_pair(installation.namespace, f"{RELEASE}-operator-authority"), first)
    _write(namespace, aged)
    took = wait_until(
        "the operator renewed the certificate",
        lambda: _pair(namespace, SECRET) not in (first, aged),
    )
    print(f"renewed after {took:.1f} s")
    renewed = _pair(namespace, SECRET)
    assert _ends(renewed) - datetime.now(UTC) > LEFT_MIN
    took = wait_until(
        "brokers show new clients the new certificate",
        lambda: _shown(sender) == renewed.certificate,
    )
    print(f"shown to new clients after {took:.1f} s")
    newcomer = users.start("send", "SEALED-LATER")

    time.sleep(AFTERWARDS_SECONDS)
    assert [client.run(CONNECTIONS) for client in (sender, receiver)] == connections
    assert brokers.lives() == lives
    assert newcomer.notes()
    sender.end()
    confirmed = assert_nothing_lost(sender, receiver)
    record_gap("renewal of a certificate", gap(sender.notes(), began), GAP_SECONDS_MAX, confirmed)
    assert brokers.condition("Ready") == "True"


@pytest.fixture
def company(brokers: Brokers) -> str:
    """The name of an Issuer with a CA of its own; the real cert-manager runs on the cluster."""
    namespace = brokers.namespace
    need_cert_manager(namespace)
    authority = {"isCA": True, "commonName": "company", "secretName": "company-ca"}
    for kind, name, spec in (
        ("Issuer", "root", {"selfSigned": {}}),
        ("Certificate", "company-ca", {**authority, "issuerRef": {"name": "root"}}),
        ("Issuer", "company", {"ca": {"secretName": "company-ca"}}),
    ):
        namespace.apply(_of_cert_manager(kind, name, spec))
    return "company"


def _of_cert_manager(kind: str, name: str, spec: Manifest) -> Manifest:
    metadata = {"name": name}
    return {
        "apiVersion": "cert-manager.io/v1", "kind": kind, "metadata": metadata, "spec": spec,
    }  # fmt: skip


@pytest.mark.timeout(BUILD_SECONDS_MAX + 600)
def test_cert_manager_issues_and_renews_a_certificate_and_nobody_is_disconnected(
    brokers: Brokers, clients: Clients, company: str
) -> None:
    namespace = brokers.namespace
    tls = {"issuerRef": {"name": company}}
    namespace.apply(broker(brokers.name, listeners=[{"name": "openwire", "tls": tls}]))
    brokers.wait_settled()
    assert brokers.condition("Exposed") == "True"
    wait_until(
        "clients are told who vouches for it",
        lambda: "ca.crt" in (namespace.get("secret", "orders-client") or {})["data"],
    )
    users = replace(clients, tls=True)
    sender, receiver = users.start("send", "SEALED"), users.start("receive", "SEALED")
    first = _pair(namespace, SECRET)
    assert _shown(sender) == first.certificate
    issuer = x509.load_pem_x509_certificate(_pair(namespace, "company-ca").certificate.encode())
    x509.load_pem_x509_certificate(first.certificate.encode()).verify_directly_issued_by(issuer)
    connections = [client.run(CONNECTIONS) for client in (sender, receiver)]
    lives, began = brokers.lives(), time.time()

    _ask_for_renewal(namespace, "orders-openwire")
    wait_until("cert-manager issued another", lambda: _pair(namespace, SECRET) != first)
    renewed = _pair(namespace, SECRET)
    took = wait_until(
        "brokers show new clients the new certificate",
        lambda: _shown(sender) == renewed.certificate,
        SHOWN_SECONDS_MAX,
    )
    print(f"shown to new clients after {took:.1f} s")

    time.sleep(AFTERWARDS_SECONDS)
    assert [client.run(CONNECTIONS) for client in (sender, receiver)] == connections
    assert brokers.lives() == lives
    sender.end()
    confirmed = assert_nothing_lost(sender, receiver)
    what = "renewal of a certificate of cert-manager"
    record_gap(what, gap(sender.notes(), began), GAP_SECONDS_MAX, confirmed)
    assert brokers.condition("Ready") == "True"


def _ask_for_renewal(namespace: Namespace, name: str) -> None:
    """Say in its status that a Certificate is to be issued, as `cmctl renew` does."""
    status = (namespace.get("certificate", name) or {})["status"]
    asked = {
        "type": "Issuing", "status": "True", "reason": "ManuallyTriggered",
        "message": "a test renews it",
        "lastTransitionTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
    }  # fmt: skip
    conditions = [each for each in status["conditions"] if each["type"] != "Issuing"]
    body = json.dumps({"status": {"conditions": [*conditions, asked]}})
    namespace.kubectl(
        "patch", "certificate", name, "--subresource=status", "--type=merge", "-p", body
    )


def _pair(namespace: Namespace, name: str) -> Pair:
    """Return the certificate and the key in a Secret."""
    data = (namespace.get("secret", name) or {})["data"]
    return Pair(*(b64decode(data[key]).decode().strip() for key in ("tls.crt", "tls.key")))


def _aged(authority: Pair, present: Pair) -> Pair:
    """Return a certificate for the same names whose time to be renewed has come."""
    found = x509.load_pem_x509_certificate(present.certificate.encode())
    extension = found.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    names = extension.value.get_values_for_type(x509.DNSName)
    made = issued(authority, names, datetime.now(UTC).replace(microsecond=0) - AGE)
    return Pair(made.certificate.strip(), made.key.strip())


def _ends(pair: Pair) -> datetime:
    return x509.load_pem_x509_certificate(pair.certificate.encode()).not_valid_after_utc


def _write(namespace: Namespace, pair: Pair) -> None:
    values = {"tls.crt": pair.certificate, "tls.key": pair.key}
    data = {key: b64encode(value.encode()).decode() for key, value in values.items()}
    namespace.patch("secret", SECRET, {"data": data})


def _shown(client: Client, trusted: str = AUTHORITY) -> str:
    """Return the certificate that a new client is shown, or why it does not trust it."""
    return client.run(SHOWN, f"orders-openwire.{client.namespace.name}.svc", trusted)
