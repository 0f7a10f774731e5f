"""Every rule of a JournalAnalysis, as the API server keeps it."""

import json
from typing import Any

import pytest
from control_plane import ControlPlane

SPEC: dict[str, Any] = {"source": {"broker": "departures"}}
KEPT = [
    SPEC,
    {"source": {"claim": {"name": "journal", "path": "data/kahadb", "group": 999}}},
    {"source": {"snapshot": {"name": "before", "size": "10Gi"}}},
    {"source": {"snapshot": {"name": "before", "size": 1 << 40}}},
    {"source": {"path": "s3://bucket/journals"}},
    {**SPEC, "since": "24h", "until": "1h30m"},
    {**SPEC, "since": "2027-03-01T08:00:00Z", "until": "2027-03-01"},
    {**SPEC, "output": {"serve": {"port": 9000, "size": "64Mi"}}},
    {**SPEC, "output": {"claim": {"name": "results"}}},
    {**SPEC, "executors": {"instances": 8, "resources": {"cores": 4, "memory": "4Gi"}}},
    {**SPEC, "executors": {"dynamicAllocation": {"min": 0, "max": 4}}},
    {**SPEC, "engine": "apache"},
    {**SPEC, "engine": "local", "schedule": {"cron": "@hourly"}},
    {**SPEC, "schedule": {"cron": "*/5 * * * *"}, "deadline": "10m"},
    {"source": {"claim": {"name": "a"}}, "output": {"claim": {"name": "b"}}},
    {**SPEC, "history": {"claim": {"name": "kept", "path": "records"}, "broker": "north"}},
    {**SPEC, "history": {"path": "s3://bucket/history"}},
]
ONE_SOURCE = "expected exactly one of broker, claim, snapshot, path"
MEMORY = {"memory": "100Mi"}
REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"source": {}}, ONE_SOURCE),
    ({"source": {"broker": "a", "claim": {"name": "b"}}}, ONE_SOURCE),
    ({"source": {"snapshot": {"name": "a", "size": "1Ki"}}}, "expected 64Mi to 1Pi"),
    ({"source": {"snapshot": {"name": "a", "size": 1}}}, "expected 64Mi to 1Pi"),
    ({"source": {"snapshot": {"name": "a"}}}, "size: Required value"),
    ({"source": {"path": "here"}}, "source.path"),
    ({"source": {"claim": {"name": "a", "path": "../b"}}}, "source.claim.path"),
    ({**SPEC, "reports": ["No such"]}, "reports[0]"),
    ({**SPEC, "since": "yesterday"}, "spec.since"),
    ({**SPEC, "schedule": {"cron": "often"}}, "schedule.cron"),
    ({**SPEC, "schedule": {"cron": "@daily", "concurrencyPolicy": "Allow"}}, "Unsupported value"),
    ({**SPEC, "engine": "local", "executors": {}}, "engine local has no executors"),
    (
        {**SPEC, "engine": "apache", "schedule": {"cron": "@daily"}},
        "engine apache has no schedules",
    ),
    (
        {**SPEC, "executors": {"instances": 1, "dynamicAllocation": {"max": 2}}},
        "expected instances or dynamicAllocation, not both",
    ),
    ({**SPEC, "executors": {"dynamicAllocation": {"min": 3, "max": 2}}}, "expected min <= max"),
    ({**SPEC, "executors": {"resources": MEMORY}}, "expected 512Mi to 1Ti"),
    ({**SPEC, "resources": MEMORY}, "expected 512Mi to 1Ti"),
    ({**SPEC, "resources": {"memoryOverhead": "1Mi"}}, "expected 128Mi to 1Ti"),
    ({**SPEC, "output": {"path": "s3://a/b", "serve": {}}}, "expected at most one of claim, path"),
    ({**SPEC, "output": {"serve": {"size": "1Mi"}}}, "expected 64Mi to 1Ti"),
    (
        {"source": {"claim": {"name": "a"}}, "output": {"claim": {"name": "a"}}},
        "output.claim: not the claim that is read",
    ),
    ({**SPEC, "deadline": "1s"}, "expected 10s to 168h"),
    ({**SPEC, "history": {"broker": "north"}}, "expected exactly one of claim, path"),
    (
        {"source": {"claim": {"name": "a"}}, "history": {"claim": {"name": "a"}}},
        "history.claim: not the claim that is read",
    ),
    ({**SPEC, "history": {"path": "s3://a/b"}, "until": "1h"}, "a history is told whole"),
    ({**SPEC, "history": {"path": "s3://a/b"}, "bodies": {}}, "a history is told whole"),
]


def manifest(spec: dict[str, Any], name: str = "nightly") -> str:
    return json.dumps(
        {
            "apiVersion": "lockkeeper.dev/v1alpha1",
            "kind": "JournalAnalysis",
            "metadata": {"name": name},
            "spec": spec,
        }
    )


@pytest.mark.parametrize("spec", KEPT, ids=json.dumps)
def test_what_keeps_the_rules_is_taken(
    control_plane: ControlPlane, namespace: str, spec: dict[str, Any]
) -> None:
    arguments = ("apply", "-n", namespace, "--dry-run=server", "-f", "-")
    assert "created" in control_plane.kubectl(*arguments, text=manifest(spec))


@pytest.mark.parametrize(("spec", "why"), REFUSED, ids=lambda each: json.dumps(each)[:80])
def test_what_breaks_one_is_refused_with_the_reason(
    control_plane: ControlPlane, namespace: str, spec: dict[str, Any], why: str
) -> None:
    arguments = ("apply", "-n", namespace, "--dry-run=server", "-f", "-")
    assert why in control_plane.kubectl(*arguments, text=manifest(spec), check=False)


@pytest.mark.parametrize("name", ["9-nightly", "night.ly", "n" * 37])
def test_names_that_children_could_not_begin_with_are_refused(
    control_plane: ControlPlane, namespace: str, name: str
) -> None:
    arguments = ("apply", "-n", namespace, "--dry-run=server", "-f", "-")
    said = control_plane.kubectl(*arguments, text=manifest(SPEC, name), check=False)
    assert "metadata.name: at most 36 characters" in said


def test_kubectl_knows_it_by_its_short_name(control_plane: ControlPlane, namespace: str) -> None:
    control_plane.kubectl("apply", "-n", namespace, "-f", "-", text=manifest(SPEC))
    listed = control_plane.kubectl("get", "lkj", "-n", namespace)
    assert listed.splitlines()[0].split()[:4] == ["NAME", "ENGINE", "STATE", "PROGRESS"]
    assert "nightly" in control_plane.kubectl("get", "lockkeeper", "-n", namespace)
