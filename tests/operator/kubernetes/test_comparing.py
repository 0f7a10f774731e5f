from typing import Any

import pytest

from lockkeeper_operator.kubernetes.children.comparing import Path, added, as_made, covers
from lockkeeper_operator.kubernetes.children.field_owners import appliers_of, pointer
from lockkeeper_operator.kubernetes.quantities import quantity


@pytest.mark.parametrize(
    ("present", "wanted"),
    [
        ({"a": 1, "b": 2}, {"a": 1}),
        ({"a": {"b": [1, 2]}}, {"a": {"b": [1, 2]}}),
        (None, {}),
        ({}, {"annotations": {}, "list": []}),
        (
            [{"name": "y"}, {"name": "x", "protocol": "TCP"}],
            [{"name": "x"}],
        ),
        ([{"port": 1, "protocol": "TCP"}], [{"port": 1}]),
        ({"limits": {"cpu": "1", "memory": "2Gi"}}, {"limits": {"cpu": "1000m", "memory": "2Gi"}}),
        ({"requests": {"cpu": "1500m"}}, {"requests": {"cpu": 1.5}}),
    ],
)
def test_what_was_filled_in_or_is_others_does_not_count(present: Any, wanted: Any) -> None:
    assert covers(present, wanted)


@pytest.mark.parametrize(
    ("present", "wanted"),
    [
        ({"a": 1}, {"a": 2}),
        ({}, {"a": 1}),
        (None, {"a": 1}),
        ([1, 2], [1]),
        ([{"name": "x"}], [{"name": "y"}]),
        ([{"port": 1}], [{"port": 2}]),
        ("text", {"a": 1}),
        ("text", [1]),
        ({"note": "1000m"}, {"note": "1"}),
        ({"limits": {"cpu": "1"}}, {"limits": {"cpu": "2"}}),
        ({"limits": {}}, {"limits": {"cpu": "2"}}),
    ],
)
def test_what_is_missing_or_different_counts(present: Any, wanted: Any) -> None:
    assert not covers(present, wanted)


@pytest.mark.parametrize(
    ("answer", "wanted", "made"),
    [
        ({"a": "1Gi", "b": 2}, {"a": "1024Mi"}, {"a": "1Gi"}),
        ({}, {"hostNetwork": False}, {"hostNetwork": None}),
        ([{"name": "y"}, {"name": "x", "more": 1}], [{"name": "x", "value": ""}],
         [{"name": "x", "value": None}]),
        ([{"port": 1}], [{"port": 1, "to": ""}], [{"port": 1, "to": None}]),
        ([{"name": "x"}], [{"name": "x"}, {"name": "y"}], [{"name": "x"}]),
    ],
)  # fmt: skip
def test_what_the_api_server_makes_of_a_wish_is_covered_until_it_changes(
    answer: Any, wanted: Any, made: Any
) -> None:
    assert as_made(answer, wanted) == made
    assert not covers(answer, wanted)
    assert covers(answer, made)


def test_what_the_api_server_left_out_counts_when_it_is_there() -> None:
    assert not covers({"hostNetwork": True}, as_made({}, {"hostNetwork": False}))


@pytest.mark.parametrize(
    ("text", "number"),
    [("500m", "0.5"), ("1", "1"), (2, "2"),
     ("1.5Gi", "1610612736"), ("2e3", "2000"), ("3M", "3e6")],
)  # fmt: skip
def test_quantities_are_read_as_kubernetes_reads_them(text: Any, number: str) -> None:
    assert quantity(text) == float(number)


@pytest.mark.parametrize("text", ["", "much", "1x", "1mi", True, None, "--1"])
def test_other_text_is_no_quantity(text: Any) -> None:
    assert quantity(text) is None


POD_SPEC = ("spec", "template", "spec")


def stateful_set(**pods: Any) -> dict[str, Any]:
    container = {"name": "broker", "securityContext": {"readOnlyRootFilesystem": True}}
    spec = {"containers": [container], **pods}
    return {"kind": "StatefulSet", "spec": {"template": {"spec": spec}}}


@pytest.mark.parametrize(
    ("present", "wanted", "more"),
    [
        ({"spec": {"selector": {"a": "b", "c": "d"}}},
         {"kind": "Service", "spec": {"selector": {"a": "b"}}}, {("spec", "selector", "c")}),
        ({"spec": {"clusterIP": "10.0.0.1", "sessionAffinity": "None",
                   "ports": [{"name": "a", "port": 1, "nodePort": 30001, "protocol": "TCP"}]}},
         {"kind": "Service", "spec": {"ports": [{"name": "a", "port": 1}]}}, set()),
        ({"subjects": [{"name": "a"}, {"name": "b"}], "roleRef": {}},
         {"kind": "RoleBinding", "subjects": [{"name": "a"}], "roleRef": {}}, {("subjects", 1)}),
        ({"metadata": {"labels": {"a": "b"}}, "rules": []}, {"kind": "Role", "rules": []}, set()),
        ({"data": {"a": "b"}}, {"kind": "Secret", "data": {}}, set()),
        (stateful_set(restartPolicy="Always", securityContext={}, hostIPC=False),
         stateful_set(), set()),
        (stateful_set(hostNetwork=True), stateful_set(), {(*POD_SPEC, "hostNetwork")}),
        (stateful_set(containers=[{"name": "x"}, {"name": "broker", "securityContext":
                      {"readOnlyRootFilesystem": True, "privileged": True}}]),
         stateful_set(),
         {(*POD_SPEC, "containers", 0),
          (*POD_SPEC, "containers", 1, "securityContext", "privileged")}),
        (stateful_set(mounts=[{"name": "a", "mountPath": "/1"}, {"name": "a", "mountPath": "/2"}]),
         stateful_set(mounts=[{"name": "a", "mountPath": "/2"}]), {(*POD_SPEC, "mounts", 0)}),
    ],
)  # fmt: skip
def test_what_may_not_be_there_is_found_where_it_is(
    present: dict[str, Any], wanted: dict[str, Any], more: set[Path]
) -> None:
    assert added(present, wanted) == more


def test_whose_an_addition_is_the_api_server_knows() -> None:
    def fields(manager: str, operation: str, owned: dict[str, Any]) -> dict[str, Any]:
        return {"manager": manager, "operation": operation, "fieldsV1": owned}

    item: dict[str, Any] = {"f:containers": {'k:{"name":"spy"}': {".": {}, "f:image": {}}}}
    owned = {"f:spec": {"f:selector": {}, "f:list": {'v:"b"': {}}, **item}}
    manifest = {
        "metadata": {
            "managedFields": [
                fields("gitops", "Apply", owned),
                fields("kubectl", "Update", {"f:spec": {"f:other": {}}}),
                fields("lockkeeper", "Apply", {"f:spec": {"f:mine": {}}}),
            ]
        },
        "spec": {
            "selector": {"a": "b"},
            "containers": [{"name": "broker"}, {"name": "spy"}],
            "list": ["a", "b"],
            "other": 1,
            "mine": 2,
        },
    }
    cases: list[tuple[Path, str]] = [
        (("spec", "selector", "a"), "gitops (.spec.selector.a)"),
        (("spec", "containers", 1), "gitops (.spec.containers[1])"),
        (("spec", "containers", 0), ""),
        (("spec", "list", 1), "gitops (.spec.list[1])"),
        (("spec", "list", 0), ""),
        (("spec", "other"), ""),
        (("spec", "mine"), ""),
    ]
    for path, said in cases:
        assert appliers_of(manifest, [path]) == said
    assert pointer(("a/b", "c~d", 7)) == "/a~1b/c~0d/7"
