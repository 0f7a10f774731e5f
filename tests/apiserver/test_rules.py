"""Every CEL rule of the definitions, with objects that pass and one that does not.

Rules are collected from the models: one without a case here fails.
"""

import asyncio
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import pytest
from control_plane import ControlPlane

from lockkeeper_api.definitions import (
    broker_definition,
    broker_network_definition,
    destination_definition,
)
from lockkeeper_api.meta import API_VERSION
from lockkeeper_operator.kubernetes.api.errors import INVALID, ApiError
from lockkeeper_operator.kubernetes.api.kinds import BY_NAME
from lockkeeper_operator.kubernetes.api.server import ApiServer, connect

Spec: TypeAlias = dict[str, Any]
DEFINITIONS = {
    "Broker": broker_definition(),
    "Destination": destination_definition(),
    "BrokerNetwork": broker_network_definition(),
}
REQUIRED: dict[str, Spec] = {
    "Broker": {},
    "Destination": {"brokerRef": {"name": "b"}},
    "BrokerNetwork": {"brokers": {"selector": {}}},
}
ITEMS: dict[str, Any] = {
    "listeners": {"name": "openwire"},
    "virtualTopics": {"name": "V.>"},
    "compositeDestinations": {"kind": "Queue", "name": "A", "forwardTo": [{"queue": "B"}]},
    "forwardTo": {},
    "destinationPolicies": {"match": "A"},
    "users": {"name": "a"},
    "permissions": {"match": "A"},
}
"""What an item of a list must have."""
_names = (f"rule-{number}" for number in itertools.count())


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule: of which kind, at which path below the object, and its complaint."""

    kind: str
    path: str
    message: str

    def __str__(self) -> str:
        """Return it as the name of a test."""
        return f"{self.kind} {self.path}: {self.message[:40]}"


@dataclass(frozen=True, slots=True)
class Case:
    """Specs that pass and one that does not; *before* is what the object was, for changes."""

    good: tuple[Spec, ...]
    bad: Spec
    before: Spec | None = None
    name: str = ""


def all_rules() -> list[Rule]:
    found = []
    for kind, definition in DEFINITIONS.items():
        schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
        found += [Rule(kind, path, message) for path, message in _rules_in(schema, "")]
    return found


def _rules_in(schema: dict[str, Any], path: str) -> Iterator[tuple[str, str]]:
    for rule in schema.get("x-kubernetes-validations", ()):
        yield path, rule["message"]
    for name, inner in schema.get("properties", {}).items():
        yield from _rules_in(inner, f"{path}.{name}".lstrip("."))
    if "items" in schema:
        yield from _rules_in(schema["items"], f"{path}[]")


def storage(**said: Any) -> Spec:
    return {"storage": said}


def service(**said: Any) -> Spec:
    return {"listeners": [{"name": "openwire", "service": said}]}


def listeners(*ports: int, name: str = "l") -> Spec:
    return {"listeners": [{"name": f"{name}{n}", "port": port} for n, port in enumerate(ports)]}


def lease(duration: str, renew: str, retry: str) -> Spec:
    said = {"duration": duration, "renewDeadline": renew, "retryPeriod": retry}
    return {"locker": {"lease": said}}


def destination(**said: Any) -> Spec:
    return {**REQUIRED["Destination"], **said}


def network(**said: Any) -> Spec:
    return {**REQUIRED["BrokerNetwork"], **said}


def tls(**said: Any) -> Spec:
    return {"listeners": [{"name": "openwire", "tls": said}]}


def route(encrypted: bool = True, **said: Any) -> Spec:
    listener: Spec = {"name": "openwire", "route": {"host": "mq.example.org", **said}}
    return {"listeners": [{**listener, "tls": {}} if encrypted else listener]}


def bootstrap(**said: Any) -> Spec:
    return {"bootstrap": said}


def user(**said: Any) -> Spec:
    return {"access": {"users": [said]}}


def stream(**said: Any) -> Spec:
    return destination(kind="Stream", **said)


URLS = ["tcp://a:61616"]
LEASE_BOUNDS = "expected 100ms to 10m"
LEASE = lease("10s", "6s", "1s")
PORTS = "a cluster needs to know ports beforehand: a port for each, 0 is for local processes"
CASES: dict[tuple[str, str, str], Case] = {
    ("Broker", "", "metadata.name: expected a letter"): Case(({},), {}, name="1st"),
    ("Broker", "", "metadata.name: at most 45"): Case(
        ({"listeners": [{"name": "a" * 50}]},), {"listeners": [{"name": "admin-tls"}]}
    ),
    ("Broker", "", "metadata.name: at most 60"): Case(
        ({"listeners": [{"name": "a" * 50, "service": {"perPod": True}}]},),
        {"listeners": [{"name": "a" * 55, "service": {"perPod": True}}]},
    ),
    ("Broker", "", PORTS): Case(({"admin": {"port": 1}},), {"admin": {"port": 0}}),
    ("Broker", "", "spec.admin.tlsPort is a port of its own"): Case(
        ({"admin": {"tlsPort": 1}}, {"admin": {"port": 8171, "tlsPort": 8161}}),
        {"admin": {"port": 8171}},
    ),
    ("Broker", "spec.listeners", PORTS): Case((listeners(1, 2),), listeners(1, 1)),
    ("Broker", "spec.listeners[]", "route needs tls"): Case(
        (route(ingressClassName="nginx"),), route(encrypted=False, ingressClassName="nginx")
    ),
    ("Broker", "spec.listeners[].route", "expected exactly one of gateway"): Case(
        (route(ingressClassName="nginx"), route(gateway={"name": "g"})), route()
    ),
    ("Broker", "spec.listeners[]", "updateClusterClients and rebalanceClusterClients"): Case(
        (
            {"listeners": [{"name": "a", "updateClusterClients": True, "advertisedUrls": URLS}]},
            {"listeners": [{"name": "a", "rebalanceClusterClients": True, "advertisedUrls": URLS}]},
            {"listeners": [{"name": "a"}]},
        ),
        {"listeners": [{"name": "a", "rebalanceClusterClients": True}]},
    ),
    ("Broker", "spec.listeners[].tls", "expected at most one of secretName"): Case(
        (tls(), tls(secretName="a"), tls(issuerRef={"name": "a"})),
        tls(secretName="a", issuerRef={"name": "a"}),
    ),
    ("Broker", "spec.listeners[].tls", "clientCertificates needs"): Case(
        (
            tls(secretName="a", clientCertificates="Required"),
            tls(issuerRef={"name": "a"}, clientCertificates="Wanted"),
        ),
        tls(clientCertificates="Required"),
    ),
    ("Broker", "spec.bootstrap", "expected exactly one of backup"): Case(
        (bootstrap(backup="a"), bootstrap(claim={"name": "a"}), bootstrap(journal={"name": "a"}),
         bootstrap(snapshot="a")),
        bootstrap(backup="a", snapshot="b"),
    ),
    ("Broker", "spec.bootstrap", "url needs image"): Case(
        (bootstrap(url="s3://a/b", image="c"),), bootstrap(url="s3://a/b")
    ),
    ("Broker", "spec.bootstrap", "until is for backups"): Case(
        (bootstrap(backup="a", until="2026-11-24T03:50:00Z"),),
        bootstrap(snapshot="a", until="2026-11-24T03:50:00Z"),
    ),
    ("Broker", "spec.listeners[].service", "nodePort"): Case(
        (service(type="NodePort", nodePort=30000),), service(type="ClusterIP", nodePort=30000)
    ),
    ("Broker", "spec.listeners[].service", "loadBalancerClass and sourceRanges"): Case(
        (
            service(
                type="LoadBalancer", loadBalancerClass="example.com/lb",
                sourceRanges=["192.0.2.0/24", "2001:db8::/32"],
            ),
            service(type="NodePort", sourceRanges=[]),
        ),
        service(type="NodePort", sourceRanges=["192.0.2.0/24"]),
    ),
    ("Broker", "spec.listeners[].service", "externalTrafficPolicy"): Case(
        (service(type="NodePort", externalTrafficPolicy="Local"),),
        service(externalTrafficPolicy="Local"),
    ),
    ("Broker", "spec.listeners[].service", "two different ipFamilies"): Case(
        (
            service(ipFamilies=["IPv6"], ipFamilyPolicy="SingleStack"),
            service(ipFamilies=["IPv6", "IPv4"], ipFamilyPolicy="RequireDualStack"),
        ),
        service(ipFamilies=["IPv4", "IPv6"], ipFamilyPolicy="SingleStack"),
    ),
    ("Broker", "spec.locker.lease", "expected retryPeriod"): Case(
        (LEASE,), lease("10s", "6s", "6s")
    ),
    ("Broker", "spec.locker.lease.duration", LEASE_BOUNDS): Case(
        (LEASE, lease("10m", "6s", "1s")), lease("11m", "6s", "1s")
    ),
    ("Broker", "spec.locker.lease.renewDeadline", LEASE_BOUNDS): Case(
        (LEASE,), lease("10s", "99ms", "98ms")
    ),
    ("Broker", "spec.locker.lease.retryPeriod", LEASE_BOUNDS): Case(
        (LEASE, lease("10s", "6s", "100ms")), lease("10s", "6s", "99ms")
    ),
    ("Broker", "spec.compositeDestinations[].forwardTo[]", "either a queue"): Case(
        (
            {"compositeDestinations": [ITEMS["compositeDestinations"]]},
            {"compositeDestinations": [
                {"kind": "Topic", "name": "A", "forwardTo": [{"topic": "B"}]}
            ]},
        ),
        {"compositeDestinations": [
            {"kind": "Queue", "name": "A", "forwardTo": [{"queue": "B", "topic": "B"}]}
        ]},
    ),
    ("Broker", "spec.storage", "existingClaim is used"): Case(
        (storage(existingClaim="a"), storage(className="a", labels={"a": "b"})),
        storage(existingClaim="a", className="b"),
    ),
    ("Broker", "spec.storage", "a Broker cannot move"): Case(
        (storage(className="a", size="20Gi"),), storage(existingClaim="a"), storage(className="a")
    ),
    ("Broker", "spec.storage.existingClaim", "is immutable"): Case(
        (storage(existingClaim="a"),), storage(existingClaim="b"), storage(existingClaim="a")
    ),
    ("Broker", "spec.storage.className", "is immutable"): Case(
        (storage(className="a"),), storage(className="b"), storage(className="a")
    ),
    ("Broker", "spec.storage.size", "a volume cannot shrink"): Case(
        (storage(size="2Gi"), storage(size="1024Mi")), storage(size="1023Mi"), storage(size="1Gi")
    ),
    ("Broker", "spec.access.users[]", "without secretName"): Case(
        (user(name="jfk"), user(name="J.F.K.", secretName="jfk")), user(name="J.F.K.")
    ),
    ("Destination", "spec", "a Destination stays"): Case(
        (destination(name="A", deletionPolicy="Delete"),), destination(name="B"),
        destination(name="A"),
    ),
    ("Destination", "spec", "policy is for queues and topics"): Case(
        (stream(stream={"partitions": 4}), destination(policy={})), stream(policy={})
    ),
    ("Destination", "spec", "stream is for a Destination of kind Stream"): Case(
        (stream(stream={}), stream()), destination(stream={})
    ),
    ("BrokerNetwork", "", "metadata.name: at most 40"): Case((network(),), network(), name="1st"),
    ("BrokerNetwork", "spec.brokers", "expected selector or references"): Case(
        (network(), {"brokers": {"references": [{"name": "a"}]}}), {"brokers": {}}
    ),
    ("BrokerNetwork", "spec", "topology HubAndSpoke needs hub"): Case(
        (network(topology="HubAndSpoke", hub={"name": "a"}),), network(hub={"name": "a"})
    ),
    ("BrokerNetwork", "spec", "networkTTL stands for"): Case(
        (network(connector={"networkTTL": 2}), network(connector={"messageTTL": 2})),
        network(connector={"networkTTL": 2, "consumerTTL": 2}),
    ),
    ("BrokerNetwork", "spec", "syncDurableSubs is about topics"): Case(
        (network(connector={
            "syncDurableSubs": True,
            "dynamicallyIncludedDestinations": [{"kind": "Topic", "name": ">"}],
        }),),
        network(connector={"syncDurableSubs": True}),
    ),
}  # fmt: skip


def case_of(rule: Rule) -> Case:
    for (kind, path, message), case in CASES.items():
        if (kind, path) == (rule.kind, rule.path) and rule.message.startswith(message):
            return case
    if rule.message == "expected a name without a scheme":
        return Case((spec_with(rule, "A.B"),), spec_with(rule, "queue://A.B"))
    words = rule.message.split()
    assert [words[0], words[2]] == ["expected", "to"], f"{rule} has no case"
    good = tuple(spec_with(rule, bound) for bound in (words[1], words[3]) if bound != "0")
    return Case(good, spec_with(rule, beyond(words[3])))


def beyond(bound: str) -> str:
    """Return a little more than *bound*."""
    digits = "".join(itertools.takewhile(str.isdigit, bound))
    return f"{int(digits) + 1}{bound.removeprefix(digits)}"


def spec_with(rule: Rule, value: Any) -> Spec:
    """Return a spec that has *value* at the rule's path."""
    steps = rule.path.removeprefix("spec.").split(".")
    of_stream: Spec = {"kind": "Stream"} if steps[0] == "stream" else {}
    return {**REQUIRED[rule.kind], **of_stream, **_nested(steps, value)}


def _nested(steps: list[str], value: Any) -> Any:
    if not steps:
        return value
    name = steps[0].removesuffix("[]")
    inner = _nested(steps[1:], value)
    if not steps[0].endswith("[]"):
        return {name: inner}
    return {name: [{**ITEMS[name], **inner} if isinstance(inner, dict) else inner]}


async def written(api: ApiServer, rule: Rule, name: str, spec: Spec, dry: bool = True) -> str:
    """Return what the API server complains about, empty if nothing."""
    kind = BY_NAME[rule.kind]
    metadata = {"name": name, "namespace": "default"}
    resource = {"apiVersion": API_VERSION, "kind": kind.name, "metadata": metadata, "spec": spec}
    query = {"fieldManager": "person", "force": "true", **({"dryRun": "All"} if dry else {})}
    path = kind.path("default", name)
    try:
        await api.request("PATCH", path, query, resource, "application/apply-patch+yaml")
    except ApiError as error:
        assert error.status == INVALID
        return error.message
    return ""


@pytest.mark.parametrize("rule", all_rules(), ids=str)
def test_a_rule_lets_what_is_right_pass_and_nothing_else(
    control_plane: ControlPlane, rule: Rule
) -> None:
    async def main() -> None:
        case = case_of(rule)
        api = await connect(str(control_plane.kubeconfig))
        name = next(_names)
        try:
            if case.before is not None:
                assert await written(api, rule, name, case.before, dry=False) == ""
            for good in case.good:
                assert await written(api, rule, name, good) == ""
            complaint = await written(api, rule, case.name or name, case.bad)
            assert rule.message[:60] in complaint
        finally:
            await api.close()

    asyncio.run(main())
