"""A support bundle has nothing in it that nobody else should know."""

from lockkeeper.cli.cluster.report import HIDDEN, harmless


def test_secrets_keep_their_keys_alone() -> None:
    secret = {
        "kind": "Secret",
        "metadata": {
            "name": "orders-client",
            "managedFields": [{"manager": "lockkeeper"}],
            "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "c2VjcmV0"},
        },
        "data": {"password": "c2VjcmV0"},
        "stringData": {"token": "secret"},
    }
    kept = harmless(secret)
    assert kept["data"] == {"password": HIDDEN}
    assert kept["stringData"] == {"token": HIDDEN}
    assert "managedFields" not in kept["metadata"]
    assert kept["metadata"]["annotations"] == {}
    assert secret["data"] == {"password": "c2VjcmV0"}, "what was given stays as it was"


def test_environments_keep_their_names_alone() -> None:
    container = {"name": "broker", "env": [{"name": "TOKEN", "value": "secret"}]}
    for spec in ({"containers": [container]}, {"template": {"spec": {"containers": [container]}}}):
        kept = harmless({"kind": "Any", "metadata": {}, "spec": spec})
        pod = kept["spec"].get("template", {}).get("spec", kept["spec"])
        assert pod["containers"][0]["env"] == [{"name": "TOKEN", "value": HIDDEN}]


def test_references_to_secrets_stay() -> None:
    reference = {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "a", "key": "b"}}}
    pod = {"kind": "Pod", "metadata": {}, "spec": {"initContainers": [{"env": [reference]}]}}
    assert harmless(pod)["spec"]["initContainers"][0]["env"] == [reference]


def test_values_in_a_broker_that_patches_its_pods_are_left_out_too() -> None:
    variable = {"name": "TOKEN", "value": "secret"}
    patch = {"spec": {"containers": [{"name": "beside", "env": [variable]}]}}
    broker = {"kind": "Broker", "metadata": {}, "spec": {"pods": {"templatePatch": patch}}}
    assert "secret" not in str(harmless(broker))
    assert variable["value"] == "secret"
