from typing import Any

import pytest
from cluster_objects import child, subject

from lockkeeper_operator.brokers.desired.configuration import configuration_hash
from lockkeeper_operator.brokers.desired.revision import revision_of
from lockkeeper_operator.brokers.desired.subject import Installation

LISTENER: dict[str, Any] = {"name": "openwire"}


@pytest.mark.parametrize(
    "spec",
    [
        {"replicas": 3},
        {"paused": True},
        {"hibernated": True},
        {"storage": {"size": "20Gi", "labels": {"a": "b"}, "deletionPolicy": "Delete"}},
        {"listeners": [{**LISTENER, "service": {"type": "LoadBalancer"}}]},
        {"security": {"networkPolicy": {"enabled": False}}},
        {"update": {"strategy": "Supervised"}},
        {"disruptionBudget": {"enabled": False}},
        {"monitoring": {"kind": "None"}},
        {"analytics": {"schedule": "0 3 * * *"}},
        {"allowedDestinations": {"namespaces": "All"}},
        {"destinationPolicies": [{"match": ">"}]},
        {"access": {"anonymous": True}},
        # What is said, but is the default.
        {"pods": {}},
        {"journal": {"archive": False, "fileBytes": "32Mi"}},
        {"listeners": [{**LISTENER, "port": 61616}]},
    ],
)
def test_what_needs_no_restart_is_no_new_revision(spec: dict[str, Any]) -> None:
    assert revision_of(subject(**spec)) == revision_of(subject())


@pytest.mark.parametrize(
    "spec",
    [
        {"image": {"name": "own/image:2"}},
        {"resources": {"limits": {"memory": "1Gi"}}},
        {"journal": {"archive": True}},
        {"listeners": [{**LISTENER, "port": 61617}]},
        {"listeners": [{**LISTENER, "tls": {"secretName": "web"}}]},
        {"pods": {"tolerations": [{"operator": "Exists"}]}},
        {"pods": {"templatePatch": {"spec": {"hostNetwork": True}}}},
        {"security": {"runAsUser": 999}},
        {"storage": {"path": "data"}},
        {"locker": {"lease": {"enabled": False}}},
    ],
)
def test_what_needs_a_restart_is_a_new_revision(spec: dict[str, Any]) -> None:
    assert revision_of(subject(**spec)) != revision_of(subject())


def test_a_new_release_of_the_operator_restarts_nothing() -> None:
    new = subject(Installation(image="example/lockkeeper:2"))
    assert revision_of(new) == revision_of(subject())
    assert configuration_hash(new) == configuration_hash(subject())


def test_people_may_ask_for_a_restart() -> None:
    first = subject(annotations={"lockkeeper.dev/restart": "monday"})
    assert revision_of(first) != revision_of(subject())
    assert revision_of(subject(annotations={"another": "note"})) == revision_of(subject())
    template = child(first, "StatefulSet")["spec"]["template"]
    assert template["metadata"]["annotations"]["lockkeeper.dev/revision"] == revision_of(first)
