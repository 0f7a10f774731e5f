import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from lockkeeper_api.activemq_names import ACTIVEMQ_NAMES
from lockkeeper_api.definitions import all_definitions
from lockkeeper_api.generate import generated_files, main, stale_files
from lockkeeper_api.reference import setting_paths

ANNOTATIONS_BYTES_MAX = 262_144
DEFINITIONS = all_definitions()
SHORT_NAMES = {
    "Broker": "lkb", "Destination": "lkd", "BrokerNetwork": "lkn", "JournalAnalysis": "lkj",
    "JournalBackup": "lkbk",
}  # fmt: skip
HOW_IT_IS = {
    "Broker": "Ready", "Destination": "Ready", "BrokerNetwork": "Ready", "JournalAnalysis": "State",
    "JournalBackup": "State",
}  # fmt: skip
PAGES = {
    "BrokerNetwork": "broker-network", "JournalAnalysis": "journal-analysis",
    "JournalBackup": "journal-backup",
}  # fmt: skip
RULES_MIN = {"JournalBackup": 3, "BrokerNetwork": 7}
ALLOWED = {
    "type", "description", "default", "enum", "pattern", "format", "properties", "items",
    "required", "minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems", "anyOf",
    "additionalProperties", "x-kubernetes-int-or-string", "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys", "x-kubernetes-validations", "maxProperties",
    "x-kubernetes-preserve-unknown-fields",
}  # fmt: skip


def schemas(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    yield path, schema
    for name, inner in schema.get("properties", {}).items():
        yield from schemas(inner, f"{path}.{name}")
    if "items" in schema:
        yield from schemas(schema["items"], f"{path}[]")


def whole_schema(kind: str) -> dict[str, Any]:
    (version,) = DEFINITIONS[kind]["spec"]["versions"]
    schema: dict[str, Any] = version["schema"]["openAPIV3Schema"]
    return schema


def test_activemqs_names_are_those_of_settings_that_there_are() -> None:
    assert set(ACTIVEMQ_NAMES) <= setting_paths()


def test_the_generated_files_are_current() -> None:
    assert stale_files() == [], "run `make crds`"
    assert main(["--check"]) == 0


def test_each_definition_is_small_enough_for_plain_kubectl_apply() -> None:
    files = generated_files()
    sizes = {path: len(text) for path, text in files.items() if path.startswith("crds/")}
    assert len(sizes) == 5
    assert all(size < 96 * 1024 for size in sizes.values()), sizes
    # kubectl keeps what it applied in an annotation, as JSON; an object has so much for all.
    applied = {
        path: len(json.dumps(yaml.safe_load(text), separators=(",", ":")))
        for path, text in files.items()
        if path in sizes
    }
    assert all(size < ANNOTATIONS_BYTES_MAX // 2 for size in applied.values()), applied


@pytest.mark.parametrize("kind", DEFINITIONS)
def test_the_schema_is_structural(kind: str) -> None:
    for path, schema in schemas(whole_schema(kind)):
        assert set(schema) <= ALLOWED, path
        assert ("type" in schema) != ("x-kubernetes-int-or-string" in schema), path
        if "anyOf" in schema:
            assert schema["anyOf"] == [{"type": "integer"}, {"type": "string"}], path
        if schema.get("type") == "array":
            assert "items" in schema, path


@pytest.mark.parametrize("kind", DEFINITIONS)
def test_names_columns_and_status_are_there(kind: str) -> None:
    spec = DEFINITIONS[kind]["spec"]
    (version,) = spec["versions"]
    assert spec["names"]["shortNames"] == [SHORT_NAMES[kind]]
    assert spec["names"]["categories"] == ["lockkeeper"]
    assert version["subresources"]["status"] == {}
    assert "conditions" in whole_schema(kind)["properties"]["status"]["properties"]
    assert HOW_IT_IS[kind] in [column["name"] for column in version["additionalPrinterColumns"]]


def test_a_broker_can_be_scaled() -> None:
    (version,) = DEFINITIONS["Broker"]["spec"]["versions"]
    paths = version["subresources"]["scale"]
    assert set(paths) == {"specReplicasPath", "statusReplicasPath", "labelSelectorPath"}
    schema = whole_schema("Broker")
    for path in paths.values():
        _, part, name = path.split(".")
        assert name in schema["properties"][part]["properties"]


@pytest.mark.parametrize("kind", DEFINITIONS)
def test_columns_show_what_there_is(kind: str) -> None:
    (version,) = DEFINITIONS[kind]["spec"]["versions"]
    properties = whole_schema(kind)["properties"]
    for column in version["additionalPrinterColumns"]:
        _, part, *names = column["jsonPath"].partition("[")[0].split(".")
        schema = properties[part]
        for name in names if part != "metadata" else ():
            schema = schema["properties"][name]


@pytest.mark.parametrize("kind", DEFINITIONS)
def test_every_rule_says_what_is_expected(kind: str) -> None:
    rules = [
        rule
        for _, schema in schemas(whole_schema(kind))
        for rule in schema.get("x-kubernetes-validations", ())
    ]
    assert len(rules) >= RULES_MIN.get(kind, 11)
    assert all(rule["message"] and "self" in rule["rule"] for rule in rules)


def test_rules_about_sizes_stay_out_of_lists_where_they_would_cost_too_much() -> None:
    for path, schema in schemas(whole_schema("Broker")):
        if "[]" in path and "x-kubernetes-int-or-string" in schema:
            assert "x-kubernetes-validations" not in schema, path


def test_that_a_field_is_for_clusters_is_said_where_it_is_news() -> None:
    files = generated_files()
    assert "Cluster: volume of the journal" in files["docs/reference/broker.md"]
    assert "Cluster: " not in files["crds/lockkeeper.dev_brokers.yaml"]


def test_defaults_and_ranges_are_in_the_definition() -> None:
    spec = whole_schema("Broker")["properties"]["spec"]
    assert spec["default"] == {}
    (listener,) = spec["properties"]["listeners"]["default"]
    assert (listener["name"], listener["port"]) == ("openwire", 61616)
    assert "host" not in listener
    journal = spec["properties"]["journal"]
    assert journal["default"] == {}
    assert journal["properties"]["fileBytes"]["default"] == "32Mi"
    interval = journal["properties"]["recorder"]["properties"]["clockInterval"]
    assert interval["default"] == "50ms"
    (rule,) = interval["x-kubernetes-validations"]
    assert rule["message"] == "expected 1ms to 1m"


def test_what_is_written_is_plain_yaml_without_anchors() -> None:
    for path, text in generated_files().items():
        if path.endswith(".yaml"):
            assert yaml.safe_load(text) in DEFINITIONS.values()
            assert "&id" not in text


def test_every_field_is_in_the_reference() -> None:
    files = generated_files()
    for kind in DEFINITIONS:
        page = files[f"docs/reference/{PAGES.get(kind, kind.lower())}.md"]
        for path, _ in schemas(whole_schema(kind)["properties"]["spec"]):
            assert f"`{path.rpartition('.')[2].removesuffix('[]')}`" in page or not path
