from base64 import b64decode
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from cluster_objects import SURROUNDINGS, by_kind, child, pod_spec, subject

from lockkeeper_api import parse_resources
from lockkeeper_api.hashes import hash_of_text
from lockkeeper_operator.brokers.desired.children import children
from lockkeeper_operator.brokers.desired.configuration import configuration, configuration_hash
from lockkeeper_operator.brokers.desired.subject import Installation
from lockkeeper_operator.process.options import monitoring_of

PROJECT = Path(__file__).parents[3]
SAMPLE = PROJECT / "docs" / "samples" / "broker.yaml"
GOLDEN = PROJECT / "tests" / "golden" / "operator" / "departures.yaml"


def test_the_children_of_the_sample_are_those_that_were_reviewed() -> None:
    sample = yaml.safe_load(SAMPLE.read_text("utf-8"))
    found = list(children(subject(**sample["spec"])))
    assert found == list(yaml.safe_load_all(GOLDEN.read_text("utf-8")))


def test_every_child_is_labelled_and_goes_with_its_broker_but_the_claim() -> None:
    for found in children(subject(replicas=2)):
        metadata = found["metadata"]
        assert metadata["namespace"] == "airport"
        assert metadata["labels"]["app.kubernetes.io/instance"] == "departures"
        assert metadata["labels"]["app.kubernetes.io/managed-by"] == "lockkeeper-operator"
        owners = [owner["uid"] for owner in metadata.get("ownerReferences", [])]
        kept = found["kind"] == "PersistentVolumeClaim"
        assert owners == ([] if kept else ["uid-of-departures"]), found["kind"]


def test_a_claim_that_is_to_be_deleted_goes_with_its_broker() -> None:
    claim = child(subject(storage={"deletionPolicy": "Delete"}), "PersistentVolumeClaim")
    assert claim["metadata"]["ownerReferences"][0]["name"] == "departures"


@pytest.mark.parametrize(
    ("replicas", "given", "expected"),
    [
        (1, None, ["ReadWriteOnce"]),
        (2, None, ["ReadWriteMany"]),
        (2, ["ReadWriteOnce"], ["ReadWriteOnce"]),
    ],
)
def test_several_replicas_share_a_volume(replicas: int, given: Any, expected: list[str]) -> None:
    storage = {"accessModes": given} if given else {}
    found = subject(replicas=replicas, storage=storage)
    assert child(found, "PersistentVolumeClaim")["spec"]["accessModes"] == expected


def test_an_existing_claim_is_used_with_its_directory() -> None:
    found = subject(storage={"existingClaim": "activemq-data", "path": "data/kahadb/"})
    assert "PersistentVolumeClaim" not in by_kind(found)
    (journal,) = [each for each in pod_spec(found)["volumes"] if each["name"] == "journal"]
    assert journal["persistentVolumeClaim"]["claimName"] == "activemq-data"
    (container,) = pod_spec(found)["containers"]
    assert "/var/lib/lockkeeper/data/kahadb" in container["args"]


def test_pods_fit_the_restricted_standard() -> None:
    spec = pod_spec(subject())
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    (container,) = spec["containers"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
    }
    assert {mount["mountPath"] for mount in container["volumeMounts"]} == {
        "/var/lib/lockkeeper", "/etc/lockkeeper", "/etc/lockkeeper-secrets",
        "/etc/lockkeeper-networks", "/tmp",
    }  # fmt: skip


def test_standbys_are_as_ready_as_the_master() -> None:
    (container,) = pod_spec(subject(replicas=2))["containers"]
    assert container["readinessProbe"]["httpGet"]["path"] == "/healthz"


def test_clients_are_led_to_the_master_alone_listener_by_listener() -> None:
    found = subject(
        listeners=[
            {"name": "openwire"},
            {"name": "outside", "port": 61617,
             "service": {"type": "NodePort", "nodePort": 31617, "annotations": {"dns": "x"}}},
        ]
    )  # fmt: skip
    inside = child(found, "Service", "departures-openwire")
    outside = child(found, "Service", "departures-outside")
    for service in (inside, outside):
        assert service["spec"]["selector"]["lockkeeper.dev/role"] == "master"
    assert inside["spec"]["type"] == "ClusterIP"
    assert outside["spec"]["ports"][0]["nodePort"] == 31617
    assert outside["metadata"]["annotations"] == {"dns": "x"}
    headless = child(found, "Service", "departures-replicas")
    assert "lockkeeper.dev/role" not in headless["spec"]["selector"]
    assert headless["spec"]["publishNotReadyAddresses"] is True


def test_a_service_reaches_as_far_as_its_listener_says() -> None:
    said = {
        "type": "LoadBalancer", "loadBalancerClass": "example.com/lb",
        "externalTrafficPolicy": "Local", "ipFamilyPolicy": "RequireDualStack",
        "ipFamilies": ["IPv6", "IPv4"],
    }  # fmt: skip
    networks = ["192.0.2.0/24", "2001:db8::/32"]
    found = subject(listeners=[{"name": "outside", "service": {**said, "sourceRanges": networks}}])
    spec = child(found, "Service", "departures-outside")["spec"]
    assert {key: spec[key] for key in spec if key not in ("ports", "selector")} == {
        **said,
        "loadBalancerSourceRanges": networks,
    }
    inside = child(subject(), "Service", "departures-openwire")["spec"]
    assert set(inside) == {"type", "ports", "selector"}


@pytest.mark.parametrize(
    ("service", "complaint"),
    [
        ({"type": "LoadBalancer", "sourceRanges": ["192.0.2.0/33"]}, "192.0.2.0/33"),
        ({"sourceRanges": ["192.0.2.0/24"]}, "need type LoadBalancer"),
        ({"type": "NodePort", "loadBalancerClass": "a"}, "need type LoadBalancer"),
        ({"externalTrafficPolicy": "Local"}, "needs type NodePort or LoadBalancer"),
        ({"ipFamilies": ["IPv4", "IPv4"]}, "two different ipFamilies"),
        ({"ipFamilies": ["IPv4", "IPv6"], "ipFamilyPolicy": "SingleStack"}, "two different"),
    ],
)
def test_what_no_service_can_be_is_refused(service: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        subject(listeners=[{"name": "outside", "service": service}])


def test_pods_may_write_their_labels_and_hold_their_lease_and_nothing_else() -> None:
    found = subject(replicas=2)
    pods, leases = child(found, "Role")["rules"]
    assert pods["resourceNames"] == ["departures-0", "departures-1"]
    assert pods["verbs"] == ["get", "patch"]
    assert leases["resourceNames"] == [child(found, "Lease")["metadata"]["name"]]
    assert "create" not in leases["verbs"]
    assert "spec" not in child(found, "Lease")


def test_a_switched_off_lease_is_not_there() -> None:
    assert "Lease" not in by_kind(subject(locker={"lease": {"enabled": False}}))


def test_one_replica_has_no_disruption_budget_since_it_would_block_its_node() -> None:
    assert "PodDisruptionBudget" not in by_kind(subject(replicas=1))
    assert "PodDisruptionBudget" not in by_kind(subject(replicas=2, hibernated=True))
    budget = child(subject(replicas=3), "PodDisruptionBudget")
    assert budget["spec"]["maxUnavailable"] == 1


def test_a_hibernated_broker_has_no_pods_and_keeps_the_rest() -> None:
    awake, asleep = subject(replicas=2), subject(replicas=2, hibernated=True)
    assert child(asleep, "StatefulSet")["spec"]["replicas"] == 0
    assert set(by_kind(awake)) - set(by_kind(asleep)) == {"PodDisruptionBudget"}


def test_monitors_are_written_where_the_cluster_knows_them() -> None:
    spec = child(subject(monitoring={"interval": "15s"}), "PodMonitor")["spec"]
    assert spec["selector"]["matchLabels"] == {
        "app.kubernetes.io/name": "lockkeeper",
        "app.kubernetes.io/instance": "departures",
    }
    for endpoint in spec["podMetricsEndpoints"]:
        assert (endpoint["path"], endpoint["interval"]) == ("/metrics", "15s")
    assert "ServiceMonitor" in by_kind(subject(monitoring={"kind": "ServiceMonitor"}))
    assert "PodMonitor" not in by_kind(subject(monitoring={"kind": "None"}))
    assert "PodMonitor" not in by_kind(subject(Installation(image="x")))


def test_the_network_policy_lets_clients_in_and_keeps_strangers_from_the_admin_endpoint() -> None:
    spec = child(subject(Installation(image="x")), "NetworkPolicy")["spec"]
    listeners, admin = spec["ingress"]
    assert "from" not in listeners
    assert [peer["podSelector"] for peer in admin["from"]] == [
        {"matchLabels": spec["podSelector"]["matchLabels"]},
        {"matchLabels": {"app.kubernetes.io/name": "lockkeeper-operator"}},
    ]
    peers = [{"podSelector": {"matchLabels": {"app": "shop"}}}]
    some = subject(security={"networkPolicy": {"clients": peers, "monitors": peers}})
    listeners, admin = child(some, "NetworkPolicy")["spec"]["ingress"]
    assert listeners["from"] == peers
    assert admin["from"][2:] == peers
    assert "NetworkPolicy" not in by_kind(subject(security={"networkPolicy": {"enabled": False}}))


def secret(found: Any, name: str) -> dict[str, str]:
    data = child(found, "Secret", name)["data"]
    return {key: b64decode(value).decode() for key, value in data.items()}


def test_the_client_secret_has_all_that_an_application_needs() -> None:
    assert secret(subject(replicas=2), "departures-client") == {
        "type": "activemq",
        "provider": "lockkeeper",
        "host": "departures-openwire.airport.svc.cluster.local",
        "port": "61616",
        "uri": "failover:(tcp://departures-0.departures-replicas.airport.svc.cluster.local:61616,"
        "tcp://departures-1.departures-replicas.airport.svc.cluster.local:61616)"
        "?initialReconnectDelay=100&maxReconnectDelay=500&nested.connectionTimeout=1000"
        "&nested.wireFormat.maxInactivityDuration=10000",
        "username": "client",
        "password": "secret",
    }


def test_nobody_is_made_up_where_users_are_named_or_nobody_is_asked() -> None:
    named = subject(access={"users": [{"name": "Big Jet".replace(" ", "-"), "secretName": "s"}]})
    assert "username" not in secret(named, "departures-client")
    anonymous = subject(access={"anonymous": True})
    assert secret(anonymous, "departures-users") == {"users": ""}


def test_pods_see_hashes_of_passwords_only() -> None:
    users = [{"name": "jfk"}, {"name": "lga", "secretName": "lga"}]
    found = subject(access={"users": users})
    assert secret(found, "departures-users") == {"users": "jfk:hash-of-jfk\n"}
    assert secret(found, "departures-user-jfk") == {"username": "jfk", "password": "runway"}
    mounted = yaml.safe_dump(pod_spec(found)["volumes"])
    assert "departures-users" in mounted
    assert "lga" not in mounted
    assert "departures-user-jfk" not in mounted


def test_certificates_are_mounted_beside_the_users() -> None:
    tls = {"secretName": "web", "clientCertificates": "Required"}
    found = subject(listeners=[{"name": "openwire", "tls": tls}])
    (volume,) = [each for each in pod_spec(found)["volumes"] if each["name"] == "secrets"]
    *others, certificates = volume["projected"]["sources"]
    names = [each["secret"]["name"] for each in others]
    assert names == ["departures-users", "departures-admin"]
    assert certificates["secret"]["name"] == "web"
    paths = [item["path"] for item in certificates["secret"]["items"]]
    assert paths == ["tls/openwire/tls.crt", "tls/openwire/tls.key", "tls/openwire/ca.crt"]
    assert secret(found, "departures-client")["uri"].startswith("failover:(ssl://")


def test_the_configuration_is_a_broker_that_a_local_process_could_run() -> None:
    found = subject(
        replicas=2,
        journal={"archive": True},
        destinationPolicies=[{"match": "A.>", "recorded": True}],
        pods={"labels": {"a": "b"}},
        listeners=[{"name": "openwire", "service": {"annotations": {"a": "b"}}}],
    )
    (resource,) = parse_resources(configuration(found), "broker.yaml").brokers
    assert resource.metadata.name == "departures"
    assert resource.spec.journal.archive
    assert resource.spec.listeners[0].host == "0.0.0.0"
    assert resource.spec.admin.host == "0.0.0.0"
    assert resource.spec.access.users[0].name == "client"
    for absent in ("replicas", "pods", "service", "storage"):
        assert f"{absent}:" not in configuration(found)
    data = child(found, "ConfigMap")["data"]["broker.yaml"]
    assert hash_of_text(data) == configuration_hash(found)


def test_pods_are_what_the_spec_says() -> None:
    found = subject(
        image={"name": "own/image:2", "pullSecrets": ["pull"]},
        resources={"limits": {"memory": "1Gi"}},
        pods={
            "labels": {"team": "ramp", "app.kubernetes.io/instance": "another"},
            "nodeSelector": {"disk": "ssd"},
            "tolerations": [{"operator": "Exists"}],
            "priorityClassName": "high",
            "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone"}],
            "terminationGracePeriodSeconds": 90,
        },
    )
    template = child(found, "StatefulSet")["spec"]["template"]
    assert template["metadata"]["labels"]["team"] == "ramp"
    assert template["metadata"]["labels"]["app.kubernetes.io/instance"] == "departures"
    spec = template["spec"]
    (container,) = spec["containers"]
    assert container["image"] == "own/image:2"
    assert container["resources"] == {"limits": {"memory": "1Gi"}}
    assert spec["imagePullSecrets"] == [{"name": "pull"}]
    assert spec["topologySpreadConstraints"][0]["labelSelector"]["matchLabels"]
    assert (spec["priorityClassName"], spec["terminationGracePeriodSeconds"]) == ("high", 90)
    (default,) = pod_spec(subject())["containers"]
    assert default["image"] == SURROUNDINGS.image
    assert "tolerations" not in pod_spec(subject())


def test_replicas_wish_for_different_nodes_unless_told_otherwise() -> None:
    assert "podAntiAffinity" in pod_spec(subject())["affinity"]
    assert pod_spec(subject(pods={"affinity": {}}))["affinity"] == {}


def test_replicas_spread_over_zones_and_nodes_unless_told_otherwise() -> None:
    spread = pod_spec(subject(replicas=2))["topologySpreadConstraints"]
    keys = ["topology.kubernetes.io/zone", "kubernetes.io/hostname"]
    assert [each["topologyKey"] for each in spread] == keys
    for each in spread:
        assert each["whenUnsatisfiable"] == "ScheduleAnyway", "one zone alone must do"
        assert each["labelSelector"]["matchLabels"]["app.kubernetes.io/instance"] == "departures"
    own = [{"maxSkew": 2, "topologyKey": "rack", "labelSelector": {}}]
    for pods in (
        {"topologySpreadConstraints": own},
        {"templatePatch": {"spec": {"topologySpreadConstraints": own}}},
    ):
        assert pod_spec(subject(pods=pods))["topologySpreadConstraints"] == own
    without = {"templatePatch": {"spec": {"topologySpreadConstraints": None}}}
    assert "topologySpreadConstraints" not in pod_spec(subject(pods=without))


@pytest.mark.parametrize(
    ("kind", "key"), [("PodMonitor", "podMetricsEndpoints"), ("ServiceMonitor", "endpoints")]
)
def test_figures_are_fetched_over_tls_where_pods_serve_it(kind: str, key: str) -> None:
    found = subject(monitoring={"kind": kind})
    encrypted, plain = child(found, kind)["spec"][key]
    assert (encrypted["port"], encrypted["scheme"]) == ("admin-tls", "https")
    assert "insecureSkipVerify" not in encrypted["tlsConfig"]
    assert encrypted["tlsConfig"]["serverName"] == "departures-replicas.airport.svc.cluster.local"
    authority = encrypted["tlsConfig"]["ca"]["secret"]
    secret = child(found, "Secret", authority["name"])
    assert b64decode(secret["data"][authority["key"]]) == b"authority"
    # Pods of earlier releases lack the annotation: none is asked twice.
    template = child(found, "StatefulSet")["spec"]["template"]
    assert "lockkeeper.dev/admin-tls-port" in template["metadata"]["annotations"]
    (keep,), (drop,) = encrypted["relabelings"], plain["relabelings"]
    assert (keep["action"], drop["action"]) == ("keep", "drop")
    assert keep["sourceLabels"] == drop["sourceLabels"]
    assert plain["port"] == "admin"


def test_monitors_have_the_rules_that_the_operator_was_told() -> None:
    rules = monitoring_of('{"relabelings": [{"action": "x"}], "metricRelabelings": [{"regex": 1}]}')
    found = subject(replace(SURROUNDINGS, monitoring=rules))
    for endpoint in child(found, "PodMonitor")["spec"]["podMetricsEndpoints"]:
        assert endpoint["relabelings"][1:] == [{"action": "x"}]
        assert endpoint["metricRelabelings"] == [{"regex": 1}]
    for wrong in ("[]", '{"relabellings": []}', '{"relabelings": {}}', "{"):
        with pytest.raises(ValueError):
            monitoring_of(wrong)


def test_the_releases_image_is_fetched_with_the_releases_secrets() -> None:
    around = replace(SURROUNDINGS, pull_secrets=("registry", "mirror"))
    assert pod_spec(subject(around))["imagePullSecrets"] == [
        {"name": "registry"}, {"name": "mirror"},
    ]  # fmt: skip
    own = subject(around, image={"pullSecrets": ["mine"]})
    assert pod_spec(own)["imagePullSecrets"] == [{"name": "mine"}]
    assert "imagePullSecrets" not in pod_spec(subject(around, image={"name": "own/image:2"}))
    assert "imagePullSecrets" not in pod_spec(subject())
