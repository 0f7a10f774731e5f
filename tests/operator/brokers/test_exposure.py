"""Ways in from outside: a Service for each pod, and routes by host name."""

from typing import Any

import pytest
from cluster_objects import by_kind, subject
from pydantic import ValidationError

from lockkeeper_api import BrokerSpec
from lockkeeper_operator.brokers.desired.subject import Installation
from lockkeeper_operator.brokers.desired.target import desired_of
from lockkeeper_operator.brokers.observed import Observed
from lockkeeper_operator.brokers.status import exposed
from lockkeeper_operator.brokers.status.facts import Facts

PER_POD = {
    "name": "openwire",
    "port": 61617,
    "tls": {"secretName": "mq-tls"},
    "advertisedUrls": ["ssl://mq-0.example.org:443", "ssl://mq-1.example.org:443"],
    "service": {
        "type": "LoadBalancer",
        "perPod": True,
        "nodePort": 31617,
        "annotations": {"a": "b"},
    },
}
GATEWAY = {"name": "outside", "namespace": "gateways", "sectionName": "mq"}
KNOWN = Installation("example/lockkeeper:1", optional_kinds=frozenset({"TLSRoute"}))


def listener(**more: Any) -> dict[str, Any]:
    return {**PER_POD, **more}


def test_each_pod_has_a_service_of_its_own_with_the_host_that_is_advertised() -> None:
    found = by_kind(subject(replicas=3, listeners=[PER_POD]))["Service"]
    services = {each["metadata"]["name"]: each for each in found}
    assert set(services) == {
        "departures-openwire", "departures-openwire-0", "departures-openwire-1",
        "departures-openwire-2", "departures-replicas",
    }  # fmt: skip
    first = services["departures-openwire-0"]
    assert first["spec"]["selector"]["statefulset.kubernetes.io/pod-name"] == "departures-0"
    assert first["spec"]["type"] == "LoadBalancer"
    assert "nodePort" not in first["spec"]["ports"][0]
    assert services["departures-openwire"]["spec"]["ports"][0]["nodePort"] == 31617
    dns = "external-dns.alpha.kubernetes.io/hostname"
    assert first["metadata"]["annotations"] == {dns: "mq-0.example.org", "a": "b"}
    # Two addresses are advertised, three pods are there.
    assert services["departures-openwire-2"]["metadata"]["annotations"] == {"a": "b"}


def test_a_gateway_gets_a_route_for_the_master_and_one_for_each_advertised_pod() -> None:
    route = {"host": "mq.example.org", "gateway": GATEWAY}
    found = by_kind(subject(KNOWN, replicas=3, listeners=[listener(route=route)]))["TLSRoute"]
    told = {
        each["metadata"]["name"]: (
            each["spec"]["hostnames"],
            each["spec"]["rules"][0]["backendRefs"],
        )
        for each in found
    }
    assert told == {
        name: ([host], [{"name": name, "port": 61617}])
        for name, host in (
            ("departures-openwire", "mq.example.org"),
            ("departures-openwire-0", "mq-0.example.org"),
            ("departures-openwire-1", "mq-1.example.org"),
        )
    }
    assert all(each["spec"]["parentRefs"] == [GATEWAY] for each in found)


def test_an_ingress_passes_tls_through() -> None:
    route = {"host": "mq.example.org", "ingressClassName": "nginx", "annotations": {"c": "d"}}
    without_pods = {**PER_POD, "service": {}}
    (found,) = by_kind(subject(listeners=[{**without_pods, "route": route}]))["Ingress"]
    annotations = found["metadata"]["annotations"]
    assert annotations["nginx.ingress.kubernetes.io/ssl-passthrough"] == "true"
    assert annotations["c"] == "d"
    assert found["spec"]["ingressClassName"] == "nginx"
    assert found["spec"]["tls"] == [{"hosts": ["mq.example.org"]}]
    (rule,) = found["spec"]["rules"]
    backend = rule["http"]["paths"][0]["backend"]["service"]
    assert backend == {"name": "departures-openwire", "port": {"number": 61617}}


def test_a_route_that_the_cluster_does_not_know_is_left_out_and_told() -> None:
    route = {"host": "mq.example.org", "gateway": GATEWAY}
    unknown = subject(listeners=[listener(route=route)])
    assert "TLSRoute" not in by_kind(unknown)
    verdict = exposed.condition(Facts(Observed(), desired_of(unknown)))
    assert (verdict.status, verdict.reason) == ("False", "KindMissing")
    assert "install the Gateway API, 1.5 or newer, or set ingressClassName" in verdict.message
    known = subject(KNOWN, listeners=[listener(route=route)])
    assert exposed.condition(Facts(Observed(), desired_of(known))).status == "True"


@pytest.mark.parametrize(
    ("listeners", "reason"),
    [
        (
            [{"name": "a", "route": {"host": "mq.example.org", "ingressClassName": "nginx"}}],
            "route needs tls",
        ),
        (
            [listener(route={"host": "mq.example.org"})],
            "expected exactly one of gateway, ingressClassName",
        ),
        (
            [listener(), {"name": "openwire-0", "port": 61618}],
            "two listeners have the same Service, 'openwire-0'",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(listeners: list[dict[str, Any]], reason: str) -> None:
    with pytest.raises(ValidationError, match=reason):
        BrokerSpec.model_validate({"listeners": listeners})
