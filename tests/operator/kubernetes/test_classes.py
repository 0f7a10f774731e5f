"""Several operators in a cluster: each keeps what is of its class, and nothing else."""

from typing import Any

import kopf
import pytest
from cluster_objects import SURROUNDINGS, by_kind, child, subject

from lockkeeper_operator.kopf_settings import tune
from lockkeeper_operator.kubernetes.api.kinds import (
    BROKER,
    BY_NAME,
    DESTINATION,
    JOURNAL_ANALYSIS,
    JOURNAL_BACKUP,
    POD,
)
from lockkeeper_operator.kubernetes.caches.caches import Caches, selector_of
from lockkeeper_operator.kubernetes.manifests import Manifest
from lockkeeper_operator.process.options import from_environment

LABEL = "lockkeeper.dev/class"
RESOURCES = (BROKER, DESTINATION, JOURNAL_ANALYSIS, JOURNAL_BACKUP)


def resource(name: str, class_name: str | None, version: int = 1, **more: Any) -> Manifest:
    labels = {} if class_name is None else {LABEL: class_name}
    metadata = {
        "name": name, "namespace": "shop", "resourceVersion": str(version), "labels": labels
    }  # fmt: skip
    return {"metadata": metadata, "spec": {}, **more}


class Kept:
    """The caches of an operator of a class, and what they told of."""

    def __init__(self, class_name: str) -> None:
        self.told: list[tuple[str, bool]] = []
        self.caches = Caches(
            lambda kind, _, after: self.told.append((kind, after is not None)),
            lambda _, after: self.told.append(("analysis", after is not None)),
            lambda _, after: self.told.append(("backup", after is not None)),
            class_name,
        )

    def names(self) -> list[str]:
        caches = self.caches
        stores = (caches.brokers, caches.destinations, caches.analyses, caches.backups)
        return [name for store in stores for _, name in store.names()]


@pytest.mark.parametrize(
    ("class_name", "kept"), [("", ["unsaid"]), ("blue", ["blue"]), ("green", [])]
)
def test_an_operator_keeps_what_is_of_its_class(class_name: str, kept: list[str]) -> None:
    operator = Kept(class_name)
    for kind in RESOURCES:
        for name, said in (("unsaid", None), ("blue", "blue"), ("other", "other")):
            operator.caches.put(kind, resource(name, said))
    assert operator.names() == kept * 4
    assert len(operator.told) == 4 * len(kept), "nobody is woken for what is another's"


def test_what_changes_its_class_changes_its_operator() -> None:
    first, second = Kept(""), Kept("blue")
    for version, said in ((1, None), (2, "blue"), (3, None)):
        for operator in (first, second):
            operator.caches.put(BROKER, resource("orders", said, version))
    assert first.told == [("Broker", True), ("Broker", False), ("Broker", True)]
    assert second.told == [("Broker", True), ("Broker", False)]
    assert (first.names(), second.names()) == (["orders"], [])


def test_the_late_answer_to_a_write_keeps_nothing_that_is_anothers_by_now() -> None:
    operator = Kept("blue")
    operator.caches.put(BROKER, resource("orders", "blue", 1))
    operator.caches.brokers.put(resource("orders", "green", 2, status={"revision": "r"}))
    operator.caches.brokers.put(resource("orders", "green", 3, status={"revision": "s"}))
    assert operator.names() == []


def test_of_what_people_write_only_the_class_is_watched() -> None:
    for kind in RESOURCES:
        assert selector_of(kind, "blue") == "lockkeeper.dev/class=blue"
        assert selector_of(kind, "") == ""
    for kind in (POD, BY_NAME["StatefulSet"]):
        own = selector_of(kind, "blue")
        assert own == selector_of(kind, "") == "app.kubernetes.io/managed-by=lockkeeper-operator"


def test_kopf_watches_with_the_same_selectors() -> None:
    for class_name in ("blue", ""):
        settings = kopf.OperatorSettings()
        tune(settings, clusterwide=True, class_name=class_name)
        for kind in (*RESOURCES, POD):
            found = kopf.Resource(kind.group, kind.version, kind.plural, namespaced=True)
            expected = selector_of(kind, class_name)
            chosen = settings.watching.label_selectors.collect(found)
            assert chosen == ([expected] if expected else []), kind.name


def test_the_analysis_of_a_broker_stays_with_its_operator() -> None:
    regular: dict[str, Any] = {"analytics": {"schedule": "0 3 * * *"}}
    blue = type(SURROUNDINGS)(SURROUNDINGS.image, class_name="blue")
    assert child(subject(blue, **regular), "JournalAnalysis")["metadata"]["labels"][LABEL] == "blue"
    assert LABEL not in child(subject(**regular), "JournalAnalysis")["metadata"]["labels"]
    others = {kind for kind in by_kind(subject(blue)) if kind != "JournalAnalysis"}
    assert not [k for k in others for c in by_kind(subject(blue))[k] if LABEL in str(c)]


def test_a_developers_operator_has_a_class_too() -> None:
    assert from_environment({"LOCKKEEPER_CLASS": "blue"}).installation.class_name == "blue"
    assert from_environment({}).installation.class_name == ""
