from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from lockkeeper_api import Broker, Destination, combine
from lockkeeper_api.broker import BrokerSpec
from lockkeeper_api.complaints import complaint
from lockkeeper_api.schema import CLUSTER

HEADER = {"apiVersion": "lockkeeper.dev/v1alpha1", "kind": "Broker", "metadata": {"name": "main"}}
EVERYTHING: dict[str, Any] = {
    "replicas": 2,
    "listeners": [
        {
            "name": "openwire",
            "tls": {"secretName": "main-tls", "clientCertificates": "Required"},
            "service": {"type": "NodePort", "nodePort": 31616, "annotations": {"a/b": "c"}},
        }
    ],
    "locker": {"lease": {"duration": "20s", "renewDeadline": "12s", "retryPeriod": "2s"}},
    "storage": {
        "size": "20Gi",
        "className": "fast",
        "accessModes": ["ReadWriteMany"],
        "labels": {"backup": "daily"},
        "path": "data/kahadb",
        "deletionPolicy": "Delete",
    },
    "access": {
        "anonymous": True,
        "users": [{"name": "jfk", "secretName": "jfk", "groups": ["airports"]}, {"name": "lga"}],
        "permissions": [{"match": "DEPARTURES.>", "kind": "Queue", "read": ["airports"]}],
    },
    "image": {"name": "example/lockkeeper:1", "pullPolicy": "Always", "pullSecrets": ["pull"]},
    "resources": {"requests": {"cpu": 1, "memory": "2Gi"}, "limits": {"memory": "2Gi"}},
    "pods": {
        "labels": {"team": "ramp"},
        "annotations": {"note": "x"},
        "nodeSelector": {"disk": "ssd"},
        "affinity": {"nodeAffinity": {}},
        "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone"}],
        "tolerations": [{"operator": "Exists"}],
        "priorityClassName": "high",
        "terminationGracePeriodSeconds": 30,
        "templatePatch": {"spec": {"containers": [{"name": "sidecar", "image": "x"}]}},
    },
    "security": {"runAsUser": 999, "networkPolicy": {"clients": [{"podSelector": {}}]}},
    "disruptionBudget": {"maxUnavailable": 2},
    "monitoring": {"kind": "ServiceMonitor", "interval": "15s", "labels": {"release": "p"}},
    "update": {"strategy": "Supervised"},
    "paused": True,
    "hibernated": True,
    "allowedDestinations": {"namespaces": "Selected", "selector": {"matchLabels": {"a": "b"}}},
    "analytics": {"schedule": "0 3 * * *", "timeZone": "Europe/Berlin", "suspended": True},
}


def broker(spec: dict[str, Any]) -> Broker:
    return Broker.model_validate({**HEADER, "spec": spec})


def test_what_is_for_clusters_survives_being_written_and_read() -> None:
    full = broker(EVERYTHING)
    assert Broker.model_validate_json(full.model_dump_json(by_alias=True)) == full
    written = full.model_dump(mode="json", by_alias=True, exclude_defaults=True)["spec"]
    assert written["pods"] == EVERYTHING["pods"]
    assert written["storage"] == EVERYTHING["storage"]


def test_the_defaults_are_a_restricted_broker_that_keeps_its_journal() -> None:
    spec = broker({}).spec
    assert spec.storage.deletion_policy == "Retain"
    assert spec.storage.size == 10 << 30
    assert spec.security.read_only_root_filesystem
    assert spec.security.seccomp_profile == "RuntimeDefault"
    assert spec.security.network_policy.enabled
    assert not spec.access.anonymous
    assert spec.locker.lease.enabled
    assert not (spec.paused or spec.hibernated)


@pytest.mark.parametrize(
    "spec",
    [
        {"storage": {"existingClaim": "old", "className": "fast"}},
        {"storage": {"existingClaim": "old", "accessModes": ["ReadWriteMany"]}},
        {"storage": {"path": "../elsewhere"}},
        {"storage": {"path": "/absolute"}},
        {"storage": {"size": "1Ki"}},
        {"storage": {"accessModes": []}},
        {"listeners": [{"name": "a", "service": {"nodePort": 31616}}]},
        {"listeners": [{"name": "a", "tls": {"clientCertificates": "Required"}}]},
        {"locker": {"lease": {"duration": "5s"}}},
        {"locker": {"lease": {"retryPeriod": "6s"}}},
        {"access": {"users": [{"name": "a"}, {"name": "a"}]}},
        {"access": {"users": [{"name": "a b"}]}},
        {"access": {"users": [{"name": "A@b"}]}},
        {"access": {"permissions": [{"read": ["a"]}]}},
        {"pods": {"labels": {"a": 1}}},
        {"pods": {"terminationGracePeriodSeconds": 4}},
        {"security": {"runAsUser": 0}},
        {"disruptionBudget": {"maxUnavailable": 0}},
        {"monitoring": {"kind": "Nagios"}},
        {"update": {"strategy": "supervised"}},
        {"analytics": {"schedule": "sometimes"}},
        {"analytics": {"timeZone": "Mars/Olympus"}},
    ],
)
def test_values_that_make_no_sense_are_refused(spec: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        broker(spec)


@pytest.mark.parametrize(
    ("selector", "said"),
    [
        ({"team": "blue"}, "team: no such field"),
        ({"matchlabels": {"team": "blue"}}, "did you mean matchLabels?"),
        ({"matchLabels": ["team"]}, "matchLabels: "),
        ({"matchLabels": {"team": 7}}, "matchLabels.team: "),
        ({"matchExpressions": [{"key": "team"}]}, "matchExpressions[0].operator: is required"),
        ({"matchExpressions": [{"key": "team", "operator": "Near"}]}, "operator: "),
        ({"matchExpressions": [{"key": "team", "operator": "In"}]}, "In and NotIn need values"),
    ],
)
def test_a_selector_that_would_select_what_nobody_meant_is_refused(
    selector: dict[str, Any], said: str
) -> None:
    spec = {"allowedDestinations": {"namespaces": "Selected", "selector": selector}}
    with pytest.raises(ValidationError) as refused:
        broker(spec)
    (error,) = refused.value.errors()
    path, reason = complaint(Broker, error)
    assert path == "spec.allowedDestinations.selector"
    assert said in reason


@pytest.mark.parametrize(
    "selector",
    [
        {},
        {"matchLabels": None},
        {"matchLabels": {"team": "blue"}, "matchExpressions": []},
        {"matchExpressions": [{"key": "team", "operator": "Exists", "values": []}]},
        {"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["red"]}]},
    ],
)
def test_a_selector_as_kubernetes_has_them_is_taken(selector: dict[str, Any]) -> None:
    spec = {"allowedDestinations": {"namespaces": "Selected", "selector": selector}}
    assert broker(spec).spec.allowed_destinations.selector == selector


def test_what_is_nested_deeper_than_any_object_of_kubernetes_is_refused() -> None:
    def nested(levels: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for _ in range(levels - 1):
            found = {"a": [found]} if len(found) % 2 else {"a": found}
        return found

    assert broker({"pods": {"templatePatch": nested(30)}}).spec.pods
    with pytest.raises(ValidationError) as refused:
        broker({"pods": {"templatePatch": nested(2000)}})
    (error,) = refused.value.errors()
    assert complaint(Broker, error) == (
        "spec.pods.templatePatch", "expected at most 64 levels of mappings and lists",
    )  # fmt: skip


def test_a_stop_without_time_to_hand_over_is_refused_by_the_name_of_its_field() -> None:
    assert broker({"pods": {"terminationGracePeriodSeconds": 5}}).spec.pods
    with pytest.raises(ValidationError) as refused:
        broker({"pods": {"terminationGracePeriodSeconds": 1}})
    (error,) = refused.value.errors()
    assert complaint(Broker, error) == (
        "spec.pods.terminationGracePeriodSeconds",
        "should be greater than or equal to 5, found 1",
    )


def leaves(model: type[BaseModel]) -> list[str]:
    """The descriptions of all fields of *model*; those of inner models instead of their own."""
    found: list[str] = []
    for field in model.model_fields.values():
        inner = field.annotation
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            found += leaves(inner)
        else:
            found.append(str(field.description))
    return found


@pytest.mark.parametrize(
    "part",
    [
        "storage", "access", "image", "pods", "security", "disruption_budget", "monitoring",
        "update", "allowed_destinations", "analytics",
    ],
)  # fmt: skip
def test_each_field_for_clusters_says_so(part: str) -> None:
    model = BrokerSpec.model_fields[part].annotation
    assert isinstance(model, type)
    descriptions = [str(BrokerSpec.model_fields[part].description), *leaves(model)]
    assert len(descriptions) > 1
    assert [text for text in descriptions if not text.startswith(CLUSTER)] == []


DESTINATION = (
    "apiVersion: lockkeeper.dev/v1alpha1\nkind: Destination\n"
    "metadata: {name: orders, namespace: shop}\n"
)
BROKER = (
    "apiVersion: lockkeeper.dev/v1alpha1\nkind: Broker\nmetadata: {name: main, namespace: mq}\n"
)


def test_a_destination_may_be_in_another_namespace_than_its_broker() -> None:
    elsewhere = f"{DESTINATION}spec:\n  brokerRef: {{name: main, namespace: mq}}\n"
    resources = combine([("a.yaml", BROKER), ("b.yaml", elsewhere)])
    (destination,) = resources.destinations_of(resources.brokers[0])
    assert destination.broker_namespace == "mq"


def test_a_destination_is_kept_when_its_resource_is_deleted_unless_it_says_otherwise() -> None:
    spec = {"brokerRef": {"name": "main"}}
    values = {**HEADER, "kind": "Destination", "spec": spec}
    destination = Destination.model_validate(values)
    assert destination.spec.deletion_policy == "Retain"
    assert destination.spec.adoption == "Allowed"
    with pytest.raises(ValidationError):
        Destination.model_validate({**values, "spec": {**spec, "deletionPolicy": "Purge"}})
