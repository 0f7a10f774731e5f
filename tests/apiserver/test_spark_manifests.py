"""What is made of a JournalAnalysis, as API servers with and without Spark's operators take it."""

import gzip
import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml
from control_plane import ControlPlane

from lockkeeper_operator.analyses.desired.children import run, supports
from lockkeeper_operator.analyses.names import EXECUTOR_FILE
from lockkeeper_operator.analyses.subject import AnalysisSubject
from lockkeeper_operator.brokers.journal import Journal
from lockkeeper_operator.kubernetes.children.child_steps import stamped
from lockkeeper_operator.kubernetes.children.comparing import covers

GOLDEN = Path(__file__).parents[1] / "golden" / "spark"
OBJECTS = Path(__file__).parents[1] / "operator" / "analysis_objects.py"
FULL: dict[str, Any] = {
    "reports": ["totals", "latency"],
    "since": "24h",
    "until": "2027-03-01T10:00:00Z",
    "destination": "DEPARTURES.>",
    "executors": {"dynamicAllocation": {"min": 1, "max": 4}, "resources": {"cores": 2}},
    "output": {"path": "s3://reports/nightly"},
    "credentials": "keys",
    "sparkConf": {"spark.eventLog.enabled": "true"},
    "deadline": "2h",
    "image": {"name": "example/analytics:2", "pullPolicy": "Always", "pullSecrets": ["pull"]},
    "pods": {
        "labels": {"team": "ramp"},
        "annotations": {"note": "x"},
        "nodeSelector": {"disk": "ssd"},
        "tolerations": [{"operator": "Exists"}],
        "priorityClassName": "high",
    },
}
NIGHTLY = {"schedule": {"cron": "0 3 * * *", "timeZone": "Europe/Berlin"}}
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "kubeflow": ("sparkApplication", {}),
    "kubeflow in full": ("sparkApplication", FULL),
    "kubeflow by schedule": ("sparkApplication", {**FULL, **NIGHTLY}),
    "apache": ("apache", {}),
    "apache in full": ("apache", FULL),
    "native": ("native", {}),
    "native in full": ("native", FULL),
    "native by schedule": ("native", {**FULL, **NIGHTLY}),
    "local": ("local", {}),
    "local by schedule": ("local", {**NIGHTLY, "ttlSecondsAfterFinished": 60}),
    "results in a claim": ("native", {"output": {"claim": {"name": "results", "path": "a/b"}}}),
    "a snapshot": ("native", {"source": {"snapshot": {"name": "then", "size": "1Gi"}}}),
}


def _objects() -> ModuleType:
    found = importlib.util.spec_from_file_location("analysis_objects", OBJECTS)
    assert found is not None and found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def spark(control_plane: ControlPlane) -> ControlPlane:
    """An API server that knows the resources of both Spark operators."""
    for path in sorted(GOLDEN.glob("*.json.gz")):
        text = gzip.decompress(path.read_bytes()).decode()
        control_plane.kubectl("apply", "--server-side", "-f", "-", text=text)
    control_plane.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=30s")
    return control_plane


def subject(case: str, namespace: str) -> AnalysisSubject:
    engine, spec = CASES[case]
    objects = _objects()
    journal = objects.JOURNAL
    if "source" in spec:
        spec = {**spec, "source": spec["source"]}
        journal = Journal(claim="nightly-snapshot", one_node=True, snapshot="then")
    found: AnalysisSubject = objects.analysis_subject(engine, journal, namespace, **spec)
    return found


@pytest.mark.parametrize("case", CASES)
def test_every_child_is_taken_as_it_is_and_applied_again_stays_the_same(
    spark: ControlPlane, namespace: str, case: str
) -> None:
    analysis = subject(case, namespace)
    for child in (*supports(analysis), run(analysis)):
        manifest = stamped(child)
        apply = ("apply", "--server-side", "--field-manager=lockkeeper", "--validate=strict")
        arguments = (*apply, "-n", namespace, "-f", "-", "-o", "json")
        first = json.loads(spark.kubectl(*arguments, text=json.dumps(manifest)))
        assert covers(first, manifest), manifest["kind"]
        again = json.loads(spark.kubectl(*arguments, "--dry-run=server", text=json.dumps(manifest)))
        assert again == first, manifest["kind"]


@pytest.mark.parametrize("case", ["kubeflow in full", "kubeflow by schedule"])
def test_nothing_is_added_to_a_kubeflow_application(
    spark: ControlPlane, namespace: str, case: str
) -> None:
    manifest = run(subject(case, namespace))
    arguments = ("apply", "--server-side", "--dry-run=server", "-n", namespace, "-f", "-")
    taken = json.loads(spark.kubectl(*arguments, "-o", "json", text=json.dumps(manifest)))
    assert taken["spec"] == manifest["spec"]


@pytest.mark.parametrize("case", ["native in full", "kubeflow in full", "apache in full", "local"])
def test_pods_keep_the_restricted_standard(spark: ControlPlane, namespace: str, case: str) -> None:
    spark.kubectl("label", "namespace", namespace, "pod-security.kubernetes.io/enforce=restricted")
    spark.kubectl("create", "priorityclass", "high", "--value=1", check=False)
    analysis = subject(case, namespace)
    found: dict[str, Any] = _objects().templates(analysis)
    for child in supports(analysis):
        if child["kind"] == "ConfigMap":
            found["executor"] = yaml.safe_load(child["data"][EXECUTOR_FILE])
        if child["kind"] == "Deployment":
            found["page"] = child["spec"]["template"]
    assert "driver" in found
    for name, template in found.items():
        metadata = {**template["metadata"], "name": name}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}
        said = spark.kubectl(
            *("apply", "--dry-run=server", "--validate=strict", "-n", namespace, "-f", "-"),
            text=json.dumps(pod),
        )
        assert "created" in said


def test_the_application_written_by_hand_is_taken(spark: ControlPlane, namespace: str) -> None:
    path = GOLDEN.parents[2] / "docs" / "samples" / "spark" / "spark-application.yaml"
    arguments = ("--dry-run=server", "--validate=strict", "-n", namespace, "-f", str(path))
    assert "created" in spark.kubectl("apply", *arguments)
