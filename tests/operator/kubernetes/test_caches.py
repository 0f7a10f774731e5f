"""What is kept of objects, and what of a change wakes whom."""

import json
import random
import tracemalloc
from typing import Any

from lockkeeper_operator.brokers.observed import pod_of
from lockkeeper_operator.kubernetes.api.errors import error_of
from lockkeeper_operator.kubernetes.api.kinds import BY_NAME, POD
from lockkeeper_operator.kubernetes.caches.packing import LAST_APPLIED, trimmed
from lockkeeper_operator.kubernetes.caches.store import Groups, Store
from lockkeeper_operator.kubernetes.children.field_owners import steadfast_owners
from lockkeeper_operator.kubernetes.manifests import Manifest
from lockkeeper_operator.polling.views import policy_hash, rounded_age

OBJECTS = 300


def manifest(version: int, name: str = "a", **more: Any) -> Manifest:
    metadata = {"name": name, "namespace": "n", "resourceVersion": str(version)}
    return {"metadata": metadata, **more}


class Told:
    def __init__(self, kind: str = "ConfigMap") -> None:
        self.changes: list[tuple[Manifest | None, Manifest | None]] = []
        self.store = Store(
            BY_NAME[kind],
            lambda found: (("data", str(found.get("data"))),),
            lambda before, after: self.changes.append((before, after)),
        )


def test_only_what_differs_is_a_change() -> None:
    told = Told()
    told.store.put(manifest(5, data="x"))
    told.store.put(manifest(6, data="x", status={"nobody": "reads it"}))
    assert len(told.changes) == 1
    assert told.store.get("n", "a")["metadata"]["resourceVersion"] == "6"  # type: ignore[index]
    told.store.put(manifest(7, data="y"))
    before, after = told.changes[1]
    assert before is not None and after is not None
    assert (before["data"], after["data"]) == ("x", "y")
    assert after["kind"] == "ConfigMap"
    assert told.store.names_in("data", "x") == ()
    assert told.store.names_in("data", "y") == (("n", "a"),)


def test_objects_that_change_take_no_more_room_than_before() -> None:
    store = Store(BY_NAME["ConfigMap"], _kept_in_two_groups, lambda before, after: None)
    tracemalloc.start()
    try:
        _put_all(store, 1)
        once, _ = tracemalloc.get_traced_memory()
        _put_all(store, 2)
        twice, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(store) == OBJECTS
    assert twice - once < 20 * OBJECTS


def test_what_all_objects_of_a_kind_have_is_kept_once() -> None:
    noise = random.Random(1)
    common = {str(number): noise.randbytes(9).hex() for number in range(200)}
    store = Store(BY_NAME["ConfigMap"], lambda _: (), lambda before, after: None)
    tracemalloc.start()
    try:
        for number in range(OBJECTS):
            store.put(manifest(number + 1, f"a-{number}", data={**common, "own": str(number)}))
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert taken < 1000 * OBJECTS
    found = store.get("n", "a-7")
    assert found is not None and found["data"] == {**common, "own": "7"}


def _kept_in_two_groups(found: Manifest) -> Groups:
    metadata = found["metadata"]
    return (metadata["namespace"], metadata["name"]), ("all", metadata["namespace"])


def _put_all(store: Store, version: int) -> None:
    """Put objects as they are read: each with text of its own."""
    for number in range(OBJECTS):
        text = json.dumps(manifest(version, f"a-{number}", data=version))
        store.put(json.loads(text))


def test_what_is_older_than_what_is_known_changes_nothing() -> None:
    told = Told()
    told.store.put(manifest(7, data="new"))
    told.store.put(manifest(6, data="old"))
    told.store.drop(manifest(6))
    told.store.keep_only({}, None, "6")
    assert [found["data"] for found in told.store.group("data", "new")] == ["new"]
    told.store.keep_only({}, "other", "9")
    assert len(told.store) == 1
    told.store.keep_only({}, "n", "9")
    assert len(told.store) == 0
    assert told.changes[-1][1] is None


def test_the_late_answer_to_a_write_brings_nothing_back() -> None:
    told = Told()
    told.store.put(manifest(5, data="x"))
    told.store.drop(manifest(9))
    told.store.put(manifest(8, data="written before it went"))
    assert len(told.store) == 0
    # Its successor is newer, and stays when the news of the first comes again.
    told.store.put(manifest(10, data="y"))
    told.store.drop(manifest(9))
    assert [found["data"] for found in told.store.all()] == ["y"]


def test_what_a_whole_list_did_not_have_is_not_brought_back_either() -> None:
    told = Told()
    told.store.put(manifest(5, data="x"))
    told.store.put(manifest(6, "b", data="x"))
    told.store.drop(manifest(7, "b"))
    told.store.keep_only({}, "n", "20")
    for name in ("a", "b", "c"):
        told.store.put(manifest(19, name, data="late"))
    assert len(told.store) == 0
    told.store.put(manifest(21, "b", data="new"))
    assert told.store.names() == (("n", "b"),)
    # The kind itself is gone, and comes back.
    told.store.keep_only({}, None, None)
    assert len(told.store) == 0
    told.store.put(manifest(22, data="x"))
    assert len(told.store) == 1


def test_what_a_list_had_is_taken_over_when_the_watch_brings_it() -> None:
    told = Told()
    told.store.put(manifest(5, "old", data="x"))
    # The watch is behind: it has not brought "new" yet, which the list of 100 has.
    told.store.keep_only({("n", "old"): 5, ("n", "new"): 90}, None, "100")
    told.store.put(manifest(89, "new", data="late"))
    told.store.put(manifest(99, "gone", data="late"))
    assert told.store.names() == (("n", "old"),)
    told.store.put(manifest(90, "new", data="y"))
    assert told.store.names() == (("n", "old"), ("n", "new"))
    # What is known of it is as of any other: once it is gone, nothing older brings it back.
    told.store.drop(manifest(120, "new"))
    told.store.put(manifest(119, "new", data="late"))
    assert told.store.names() == (("n", "old"),)


def test_a_successor_that_a_list_had_comes_after_the_end_of_the_one_before() -> None:
    told = Told()
    told.store.put(manifest(50, data="first"))
    told.store.keep_only({("n", "a"): 98}, "n", "100")
    assert [found["data"] for found in told.store.all()] == ["first"]
    told.store.drop(manifest(95))
    assert len(told.store) == 0
    told.store.put(manifest(98, data="second"))
    assert [found["data"] for found in told.store.all()] == ["second"]


def test_a_list_that_comes_late_awaits_nothing_that_is_gone_by_now() -> None:
    told = Told()
    told.store.put(manifest(98, data="x"))
    told.store.drop(manifest(105))
    told.store.keep_only({("n", "a"): 98}, "n", "100")
    told.store.put(manifest(99, data="late"))
    assert len(told.store) == 0
    # Nor what the next list has no more.
    told.store.keep_only({("n", "b"): 107}, "n", "110")
    told.store.keep_only({}, "n", "120")
    told.store.put(manifest(107, "b", data="late"))
    assert len(told.store) == 0


def test_a_pod_is_what_it_was_for_plans() -> None:
    waiting = {"state": {"waiting": {"reason": "CrashLoopBackOff", "message": "long"}}}
    pod = {
        "kind": "Pod",
        "metadata": {
            "name": "demo-0", "namespace": "n", "uid": "u", "resourceVersion": "1",
            "labels": {"lockkeeper.dev/role": "standby"},
            "annotations": {"lockkeeper.dev/revision": "r", LAST_APPLIED: "{}"},
            "managedFields": [{"manager": "somebody"}],
        },
        "spec": {"containers": []},
        "status": {
            "phase": "Running",
            "podIP": "10.0.0.1",
            "conditions": [{"type": "Ready", "status": "True", "lastProbeTime": None}],
            "containerStatuses": [waiting],
        },
    }  # fmt: skip
    kept = trimmed(pod)
    assert pod_of(kept) == pod_of(pod)
    assert kept["status"]["podIP"] == "10.0.0.1"
    assert "spec" not in kept and "managedFields" not in kept["metadata"]
    assert LAST_APPLIED not in kept["metadata"]["annotations"]
    assert POD.path("n", "demo-0", "status") == "/api/v1/namespaces/n/pods/demo-0/status"


def test_who_applies_a_field_keeps_it_and_who_changed_it_once_does_not() -> None:
    def conflict(message: str) -> str:
        causes = (
            f'[{{"reason": "FieldManagerConflict", "message": "{message}", "field": ".spec.type"}}]'
        )
        body = f'{{"reason": "Conflict", "details": {{"causes": {causes}}}}}'
        return steadfast_owners(error_of(409, body.encode()))

    assert conflict('conflict with \\"gitops\\"') == "gitops (.spec.type)"
    assert conflict('conflict with \\"kubectl-edit\\" using v1') == ""
    assert conflict('conflict with \\"x\\" with subresource \\"scale\\" using apps/v1') == ""


def test_answers_that_nobody_can_read_are_errors_all_the_same() -> None:
    assert error_of(502, b"<html>").message == "<html>"
    assert error_of(429, b"{}", "3").retry_after == 3
    assert error_of(429, b"[]", "soon").retry_after is None


def test_policies_are_the_same_whichever_defaults_are_written_down() -> None:
    assert policy_hash({"recorded": True}) == policy_hash(
        {"recorded": True, "prioritizedMessages": False}
    )
    assert policy_hash({}) not in ("", policy_hash({"recorded": True}))
    assert policy_hash(None) == ""
    assert policy_hash({"unknown": 1}) != policy_hash({})


def test_an_age_seldom_changes() -> None:
    ages = [rounded_age(seconds) for seconds in (0, 0.9, 1.5, 59, 61, 86399, 86400 * 3.5)]
    assert ages == [0, 0, 1, 30, 60, 43200, 86400 * 3]
