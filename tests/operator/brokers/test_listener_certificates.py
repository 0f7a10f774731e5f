"""Certificates of listeners: the spec's, cert-manager's, or the operator's own."""

from base64 import b64decode
from dataclasses import replace
from typing import Any

import pytest
from cluster_objects import by_kind, child, pod_spec, subject
from pydantic import ValidationError

from lockkeeper_api import BrokerSpec
from lockkeeper_operator.brokers.desired.subject import Certificate, Installation, Subject
from lockkeeper_operator.brokers.desired.target import desired_of
from lockkeeper_operator.brokers.observed import Observed
from lockkeeper_operator.brokers.status import exposed
from lockkeeper_operator.brokers.status.facts import Facts

ISSUED = Certificate("certificate", "key", "authority")
CERT_MANAGER = Installation("example/lockkeeper:1", optional_kinds=frozenset({"Certificate"}))
ISSUER: dict[str, Any] = {"issuerRef": {"name": "company", "kind": "ClusterIssuer"}}


def with_tls(installation: Installation = CERT_MANAGER, /, **tls: Any) -> Subject:
    listener = {
        "name": "openwire",
        "tls": tls,
        "advertisedUrls": ["ssl://mq-0.example.org:443", "ssl://192.0.2.7:443"],
        "route": {"host": "mq.example.org", "ingressClassName": "nginx"},
    }
    return subject(installation, listeners=[listener])


def mounted(found: Subject) -> list[str]:
    """Return the Secrets with listeners' certificates that pods have mounted."""
    (volume,) = [each for each in pod_spec(found)["volumes"] if each["name"] == "secrets"]
    names = [each["secret"]["name"] for each in volume["projected"]["sources"]]
    return [name for name in names if name not in ("departures-users", "departures-admin")]


def test_cert_manager_is_asked_for_every_name_that_clients_may_use() -> None:
    found = with_tls(**ISSUER)
    (certificate,) = by_kind(found)["Certificate"]
    assert certificate["spec"]["issuerRef"] == {
        "name": "company", "kind": "ClusterIssuer", "group": "cert-manager.io",
    }  # fmt: skip
    assert certificate["spec"]["secretName"] == "departures-openwire-tls"
    assert certificate["spec"]["dnsNames"] == [
        "departures-openwire",
        "departures-openwire.airport",
        "departures-openwire.airport.svc",
        "departures-openwire.airport.svc.cluster.local",
        "*.departures-replicas.airport.svc",
        "*.departures-replicas.airport.svc.cluster.local",
        "mq.example.org",
        "mq-0.example.org",
    ]
    assert mounted(found) == ["departures-openwire-tls"]


@pytest.mark.parametrize("tls", [ISSUER, {"secretName": "mine"}])
def test_clients_are_told_who_vouches_for_a_certificate_of_others(tls: dict[str, Any]) -> None:
    known = replace(with_tls(**tls), others_authority="their authority")
    told = child(known, "Secret", "departures-client")["data"]
    assert b64decode(told["ca.crt"]).decode() == "their authority"
    # A public authority needs no word.
    assert "ca.crt" not in child(with_tls(**tls), "Secret", "departures-client")["data"]


def test_a_secret_of_the_spec_is_mounted_and_nothing_is_issued() -> None:
    found = with_tls(secretName="mine")
    assert mounted(found) == ["mine"]
    assert "Certificate" not in by_kind(found)


def test_the_operators_own_certificate_comes_with_who_vouches_for_it() -> None:
    listeners = [{"name": "openwire", "tls": {}}]
    found = subject(listeners=listeners, listener_certificates={"openwire": ISSUED})
    secret = child(found, "Secret", "departures-openwire-tls")
    assert secret["type"] == "kubernetes.io/tls"
    assert set(secret["data"]) == {"tls.crt", "tls.key", "ca.crt"}
    assert child(found, "Secret", "departures-client")["data"]["ca.crt"] == secret["data"]["ca.crt"]
    assert mounted(found) == ["departures-openwire-tls"]


def test_without_cert_manager_the_operator_signs_and_says_so() -> None:
    listeners = [{"name": "openwire", "tls": ISSUER}]
    certificates = {"openwire": ISSUED}
    found = subject(listeners=listeners, listener_certificates=certificates)
    assert "Certificate" not in by_kind(found)
    verdict = exposed.condition(Facts(Observed(), desired_of(found)))
    assert (verdict.status, verdict.reason) == ("True", "SelfSigned")


@pytest.mark.parametrize(
    ("tls", "reason"),
    [
        ({"secretName": "mine", **ISSUER}, "at most one of secretName, issuerRef"),
        ({"clientCertificates": "Required"}, "the operator vouches for no clients"),
    ],
)
def test_what_makes_no_sense_is_refused(tls: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValidationError, match=reason):
        BrokerSpec.model_validate({"listeners": [{"name": "openwire", "tls": tls}]})
