from typing import Any

import pytest

from lockkeeper_api.cluster.operation import AllowedDestinations
from lockkeeper_operator.brokers.allowing import is_allowed
from lockkeeper_operator.kubernetes.label_selectors import matches

LABELS = {"team": "ramp", "stage": "test"}


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        (None, False),
        ({}, True),
        ({"matchLabels": None, "matchExpressions": None}, True),
        ({"matchLabels": {"team": "ramp"}}, True),
        ({"matchLabels": {"team": "ramp", "stage": "live"}}, False),
        ({"matchExpressions": [{"key": "team", "operator": "In", "values": ["ramp"]}]}, True),
        ({"matchExpressions": [{"key": "team", "operator": "In", "values": ["x"]}]}, False),
        ({"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["x"]}]}, True),
        ({"matchExpressions": [{"key": "other", "operator": "NotIn", "values": ["x"]}]}, True),
        ({"matchExpressions": [{"key": "team", "operator": "Exists"}]}, True),
        ({"matchExpressions": [{"key": "other", "operator": "Exists"}]}, False),
        ({"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]}, False),
        (
            {
                "matchLabels": {"team": "ramp"},
                "matchExpressions": [{"key": "stage", "operator": "DoesNotExist"}],
            },
            False,
        ),
    ],
)
def test_selectors_select_as_kubernetes_does(
    selector: dict[str, Any] | None, expected: bool
) -> None:
    assert matches(selector, LABELS) is expected


def test_an_unknown_operator_is_an_error() -> None:
    with pytest.raises(ValueError, match="Near"):
        matches({"matchExpressions": [{"key": "a", "operator": "Near"}]}, LABELS)


@pytest.mark.parametrize(
    ("allowed", "namespace", "expected"),
    [
        ({}, "mq", True),
        ({}, "shop", False),
        ({"namespaces": "All"}, "shop", True),
        ({"namespaces": "Selected", "selector": {"matchLabels": {"team": "ramp"}}}, "shop", True),
        ({"namespaces": "Selected", "selector": {"matchLabels": {"team": "x"}}}, "shop", False),
        ({"namespaces": "Selected"}, "shop", False),
        ({"namespaces": "Selected"}, "mq", True),
    ],
)
def test_a_broker_says_which_namespaces_it_serves(
    allowed: dict[str, Any], namespace: str, expected: bool
) -> None:
    model = AllowedDestinations.model_validate(allowed)
    assert is_allowed(model, "mq", namespace, LABELS) is expected
