"""What Argo CD shows of our resources: its scripts, run by a real Lua."""

from pathlib import Path
from typing import Any

import lupa
import pytest
import yaml

SCRIPTS = Path(__file__).parents[2] / "charts" / "lockkeeper" / "gitops" / "argocd-health.yaml"


def health(kind: str, resource: dict[str, Any]) -> str:
    data = yaml.safe_load(SCRIPTS.read_text("utf-8"))["data"]
    runtime = lupa.LuaRuntime()
    runtime.globals().obj = runtime.table_from(resource, recursive=True)
    script = data[f"resource.customizations.health.lockkeeper.dev_{kind}"]
    return str(runtime.execute(script)["status"])


def resource(observed: int = 1, spec: Any = None, **conditions: str) -> dict[str, Any]:
    """Return one with conditions, each `status` or `status reason`."""
    found = [
        {
            "type": kind,
            "status": value.split()[0],
            "reason": value.split()[-1],
            "message": "because",
        }
        for kind, value in conditions.items()
    ]
    status = {"observedGeneration": observed, "conditions": found}
    return {"metadata": {"generation": 1}, "spec": spec or {}, "status": status}


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ({"metadata": {"generation": 1}, "spec": {}}, "Progressing"),
        (resource(observed=0, Ready="True"), "Progressing"),
        (resource(), "Progressing"),
        (resource(Ready="True"), "Healthy"),
        (resource(Ready="True", Upgrading="True"), "Progressing"),
        (resource(Ready="False NoMaster"), "Progressing"),
        (resource(Ready="False InvalidSpec"), "Degraded"),
        (resource(Ready="False TwoMasters"), "Degraded"),
        (resource(Ready="True", Paused="True"), "Suspended"),
        (resource(Ready="False Hibernated", spec={"hibernated": True}), "Suspended"),
    ],
)
def test_a_broker_is_shown_as_it_is(found: dict[str, Any], expected: str) -> None:
    assert health("Broker", found) == expected


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (resource(observed=0, Ready="True"), "Progressing"),
        (resource(Ready="True", Accepted="True"), "Healthy"),
        (resource(Ready="False", Accepted="True"), "Progressing"),
        (resource(Ready="False", Accepted="False"), "Degraded"),
    ],
)
def test_a_destination_is_shown_as_it_is(found: dict[str, Any], expected: str) -> None:
    assert health("Destination", found) == expected


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (resource(observed=0, Ready="True"), "Progressing"),
        (resource(Ready="True", Reconciling="False", Stalled="False"), "Healthy"),
        (resource(Ready="False", Reconciling="True", Stalled="False"), "Progressing"),
        (resource(Ready="False", Reconciling="False", Stalled="True"), "Degraded"),
    ],
)
def test_a_network_is_shown_as_it_is(found: dict[str, Any], expected: str) -> None:
    assert health("BrokerNetwork", found) == expected
