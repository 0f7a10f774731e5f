from typing import Any

import pytest

from lockkeeper_operator.comparing import covers
from lockkeeper_operator.quantities import quantity


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
    ("text", "number"),
    [("500m", "0.5"), ("1", "1"), (2, "2"),
     ("1.5Gi", "1610612736"), ("2e3", "2000"), ("3M", "3e6")],
)  # fmt: skip
def test_quantities_are_read_as_kubernetes_reads_them(text: Any, number: str) -> None:
    assert quantity(text) == float(number)


@pytest.mark.parametrize("text", ["", "much", "1x", "1mi", True, None, "--1"])
def test_other_text_is_no_quantity(text: Any) -> None:
    assert quantity(text) is None
