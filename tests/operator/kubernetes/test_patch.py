from typing import Any

import pytest
from cluster_objects import pod_spec, subject

from lockkeeper_operator.kubernetes.patch import patched


@pytest.mark.parametrize(
    ("value", "patch", "expected"),
    [
        ({"a": 1}, {}, {"a": 1}),
        ({"a": 1}, {"b": 2}, {"a": 1, "b": 2}),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": 3}}, {"a": {"b": 3, "c": 2}}),
        ({"a": 1, "b": 2}, {"a": None}, {"b": 2}),
        ({"a": 1}, {"b": None}, {"a": 1}),
        ({"a": [1, 2]}, {"a": [3]}, {"a": [3]}),
        ({"a": []}, {"a": [{"name": "x"}]}, {"a": [{"name": "x"}]}),
        (
            {"a": [{"name": "x", "v": 1}, {"name": "y"}]},
            {"a": [{"name": "z"}, {"name": "x", "w": 2}]},
            {"a": [{"name": "x", "v": 1, "w": 2}, {"name": "y"}, {"name": "z"}]},
        ),
    ],
)
def test_a_patch_is_laid_over(value: Any, patch: Any, expected: Any) -> None:
    before = repr((value, patch))
    assert patched(value, patch) == expected
    assert repr((value, patch)) == before


def test_a_pod_template_takes_a_sidecar_and_an_environment() -> None:
    container = {"name": "broker", "env": [{"name": "TZ", "value": "UTC"}]}
    sidecar = {"name": "sidecar", "image": "x"}
    patch = {"spec": {"containers": [container, sidecar], "hostNetwork": True}}
    spec = pod_spec(subject(pods={"templatePatch": patch}))
    broker, beside = spec["containers"]
    assert beside == sidecar
    assert broker["env"][-1] == {"name": "TZ", "value": "UTC"}
    assert broker["env"][0]["name"] == "LOCKKEEPER_POD"
    assert spec["hostNetwork"] is True
