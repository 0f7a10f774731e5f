"""Images, policy and monitor of the chart: what its values make of them."""

import json
from collections.abc import Callable
from typing import Any

import pytest

Render = Callable[..., list[dict[str, Any]]]
DIGEST = "sha256:" + "0a" * 32
VERSION = "0.1.0"


def one(made: list[dict[str, Any]], kind: str) -> dict[str, Any]:
    (found,) = [each for each in made if each["kind"] == kind]
    return found


def environment(made: list[dict[str, Any]]) -> dict[str, str]:
    (container,) = one(made, "Deployment")["spec"]["template"]["spec"]["containers"]
    return {each["name"]: each["value"] for each in container["env"] if "value" in each}


def images(made: list[dict[str, Any]]) -> dict[str, str]:
    """Return all images by whose they are."""
    told = environment(made)
    found = {
        each["kind"]: each["spec"]["template"]["spec"]["containers"][0]["image"]
        for each in made
        if each["kind"] in ("Deployment", "Job")
    }
    wanted = {"broker": "LOCKKEEPER_BROKER_IMAGE", "analytics": "LOCKKEEPER_ANALYTICS_IMAGE"}
    return found | {name: told[key] for name, key in wanted.items() if key in told}


def test_one_registry_is_that_of_all_images(render: Render) -> None:
    settings = ["imageRegistry=registry.example:5000/team/", "analyticsImage.tag=v7"]
    found = images(render(*settings))
    assert found == {
        "Deployment": f"registry.example:5000/team/lockkeeper-operator:{VERSION}",
        "Job": f"registry.example:5000/team/lockkeeper-operator:{VERSION}",
        "broker": f"registry.example:5000/team/lockkeeper:{VERSION}",
        "analytics": "registry.example:5000/team/lockkeeper-analytics:v7",
    }
    assert images(render())["broker"] == f"lockkeeper:{VERSION}", "what it always was"


def test_a_digest_pins_each_image(render: Render) -> None:
    names = ("image", "brokerImage", "analyticsImage")
    found = images(render(*(f"{name}.digest={DIGEST}" for name in names), "brokerImage.tag=v9"))
    assert found["Deployment"] == found["Job"] == f"lockkeeper-operator:{VERSION}@{DIGEST}"
    assert found["broker"] == f"lockkeeper:v9@{DIGEST}"
    assert found["analytics"] == f"lockkeeper-analytics:v9@{DIGEST}"
    with pytest.raises(ValueError, match="digest"):
        render("image.digest=latest")


def test_pull_secrets_are_for_the_operator_and_for_what_it_makes(render: Render) -> None:
    made = render("imagePullSecrets={registry,mirror}")
    for kind in ("Deployment", "Job"):
        spec = one(made, kind)["spec"]["template"]["spec"]
        assert spec["imagePullSecrets"] == [{"name": "registry"}, {"name": "mirror"}]
    assert environment(made)["LOCKKEEPER_PULL_SECRETS"] == "registry,mirror"
    assert "LOCKKEEPER_PULL_SECRETS" not in environment(render())


def test_the_operator_has_a_policy_where_that_is_wanted(render: Render) -> None:
    assert not [each for each in render() if each["kind"] == "NetworkPolicy"]
    made = render("networkPolicy.enabled=true")
    policy = one(made, "NetworkPolicy")["spec"]
    labels = one(made, "Deployment")["spec"]["template"]["metadata"]["labels"]
    assert policy["podSelector"]["matchLabels"].items() <= labels.items()
    assert policy["policyTypes"] == ["Ingress"]
    (rule,) = policy["ingress"]
    assert rule["from"] == [{"namespaceSelector": {}}]
    assert rule["ports"] == [{"protocol": "TCP", "port": "admin"}]


def test_its_peers_are_those_that_are_named(render: Render) -> None:
    peer = "networkPolicy.monitors[0].namespaceSelector.matchLabels.team=monitoring"
    made = render("networkPolicy.enabled=true", peer)
    (rule,) = one(made, "NetworkPolicy")["spec"]["ingress"]
    assert rule["from"] == [{"namespaceSelector": {"matchLabels": {"team": "monitoring"}}}]


def test_with_egress_it_reaches_names_the_api_server_and_brokers_only(render: Render) -> None:
    settings = ["networkPolicy.enabled=true", "networkPolicy.egress=true"]
    policy = one(render(*settings, "networkPolicy.apiServerPorts={16443}"), "NetworkPolicy")["spec"]
    assert policy["policyTypes"] == ["Ingress", "Egress"]
    names, server, brokers = policy["egress"]
    assert {each["port"] for each in names["ports"]} == {53}
    assert [each["port"] for each in server["ports"]] == [16443]
    (peer,) = brokers["to"]
    assert peer["podSelector"]["matchLabels"]["app.kubernetes.io/name"] == "lockkeeper"


def test_rules_of_prometheus_reach_all_monitors(render: Render) -> None:
    made = render(
        "monitoring.podMonitor=true",
        "monitoring.interval=15s",
        "monitoring.relabelings[0].targetLabel=cluster",
        "monitoring.metricRelabelings[0].action=drop",
    )
    (endpoint,) = one(made, "PodMonitor")["spec"]["podMetricsEndpoints"]
    rules = {
        "relabelings": [{"targetLabel": "cluster"}],
        "metricRelabelings": [{"action": "drop"}],
    }
    assert endpoint == {"port": "admin", "path": "/metrics", "interval": "15s", **rules}
    assert json.loads(environment(made)["LOCKKEEPER_MONITORING"]) == rules
    assert "LOCKKEEPER_MONITORING" not in environment(render())
