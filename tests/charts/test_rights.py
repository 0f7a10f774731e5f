"""What the chart lets the operator do is what the operator does, neither less nor much more."""

from pathlib import Path
from typing import Any

import yaml

PROJECT = Path(__file__).parents[2]
MANIFEST = PROJECT / "deploy" / "lockkeeper.yaml"
CHILDREN = PROJECT / "tests" / "golden" / "operator" / "departures.yaml"
KEPT_KINDS = {"PersistentVolumeClaim"}
"""Never deleted: what is in them cannot be made again."""

Manifest = dict[str, Any]


def documents(path: Path) -> list[Manifest]:
    return [each for each in yaml.safe_load_all(path.read_text("utf-8")) if each]


def rules() -> list[Manifest]:
    (role,) = [
        each
        for each in documents(MANIFEST)
        if each["kind"] == "ClusterRole" and each["metadata"]["name"] == "lockkeeper"
    ]
    found: list[Manifest] = role["rules"]
    return found


def verbs_for(group: str, resource: str) -> set[str]:
    return {
        verb
        for rule in rules()
        if group in rule["apiGroups"] and resource in rule["resources"]
        for verb in rule["verbs"]
    }


def plural(kind: str) -> str:
    name = kind.lower()
    return f"{name[:-1]}ies" if name.endswith("y") else f"{name}s"


def group_of(child: Manifest) -> str:
    group, slash, _ = child["apiVersion"].partition("/")
    return group if slash else ""


def test_every_kind_of_child_can_be_made_watched_repaired_and_removed() -> None:
    lacking = {}
    for child in documents(CHILDREN):
        needed = {"get", "list", "watch", "create", "patch", "delete"}
        if child["kind"] in KEPT_KINDS:
            needed.remove("delete")
        missing = needed - verbs_for(group_of(child), plural(child["kind"]))
        if missing:
            lacking[child["kind"]] = missing
    assert len(documents(CHILDREN)) > 10
    assert lacking == {}


def test_nothing_is_given_to_brokers_that_the_operator_has_not() -> None:
    """The API server refuses a Role that holds more than who makes it."""
    (role,) = [each for each in documents(CHILDREN) if each["kind"] == "Role"]
    for rule in role["rules"]:
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                assert set(rule["verbs"]) <= verbs_for(group, resource)


def test_kinds_that_are_no_children_are_only_looked_at() -> None:
    kinds = {plural(child["kind"]) for child in documents(CHILDREN)}
    looked_at = {"brokers", "destinations", "pods", "events", "podmonitors", "servicemonitors"}
    looked_at |= {"brokernetworks", "journalanalyses", "journalbackups"}
    looked_at |= {"jobs", "cronjobs", "deployments"}
    looked_at |= {"sparkapplications", "scheduledsparkapplications", "ingresses", "tlsroutes"}
    looked_at |= {"certificates", "volumesnapshots"}
    for rule in rules():
        for resource in rule["resources"]:
            if resource.partition("/")[0] not in kinds | looked_at:
                assert set(rule["verbs"]) <= {"get", "list", "watch"}, resource
