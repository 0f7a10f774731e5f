from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from lockkeeper_api import parse_resources
from lockkeeper_api.analysis.sizing import SparkResources
from lockkeeper_api.journal_analysis import JournalAnalysis

SAMPLE = Path(__file__).parents[2] / "docs" / "samples" / "journal-analysis.yaml"
FROM_BROKER = {"source": {"broker": "departures"}}


def analysis(spec: dict[str, Any]) -> JournalAnalysis:
    return JournalAnalysis.model_validate(
        {
            "apiVersion": "lockkeeper.dev/v1alpha1",
            "kind": "JournalAnalysis",
            "metadata": {"name": "nightly"},
            "spec": spec,
        }
    )


def test_an_analysis_of_a_broker_needs_nothing_else() -> None:
    spec = analysis(FROM_BROKER).spec
    assert (spec.engine, spec.reports, spec.since, spec.schedule) == ("auto", [], None, None)
    assert spec.output.served is not None
    assert spec.executors is None
    assert spec.backoff_limit == 2


def test_results_go_to_one_place() -> None:
    claimed = analysis({**FROM_BROKER, "output": {"claim": {"name": "results"}}})
    assert claimed.spec.output.served is None
    assert analysis({**FROM_BROKER, "output": {"path": "s3://b/r"}}).spec.output.served is None


def test_python_has_memory_beside_javas_heap() -> None:
    assert SparkResources().overhead == 960 * 1024 * 1024
    assert SparkResources(cores=4).overhead == (768 + 4 * 192) * 1024 * 1024
    assert SparkResources.model_validate({"memory": "10Gi"}).overhead == 4 * 1024 * 1024 * 1024
    assert SparkResources.model_validate({"memoryOverhead": "1Gi"}).overhead == 1 << 30


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"source": {}},
        {"source": {"broker": "a", "path": "s3://b/c"}},
        {"source": {"path": "journals"}},
        {"source": {"path": "s3://a/b,s3://c/d"}},
        {"source": {"claim": {"name": "a", "path": "../b"}}},
        {"source": {"snapshot": {"name": "a"}}},
        {**FROM_BROKER, "reports": ["No such"]},
        {**FROM_BROKER, "since": "yesterday"},
        {**FROM_BROKER, "schedule": {"cron": "now and then"}},
        {**FROM_BROKER, "schedule": {"cron": "@daily", "timeZone": "Mars/Olympus"}},
        {**FROM_BROKER, "schedule": {"cron": "@daily", "concurrencyPolicy": "Allow"}},
        {**FROM_BROKER, "engine": "apache", "schedule": {"cron": "@daily"}},
        {**FROM_BROKER, "engine": "local", "executors": {}},
        {**FROM_BROKER, "executors": {"instances": 2, "dynamicAllocation": {"max": 4}}},
        {**FROM_BROKER, "executors": {"dynamicAllocation": {"min": 5, "max": 4}}},
        {**FROM_BROKER, "output": {"path": "s3://a/b", "serve": {}}},
        {"source": {"claim": {"name": "a"}}, "output": {"claim": {"name": "a"}}},
        {**FROM_BROKER, "resources": {"memory": "1Mi"}},
        {**FROM_BROKER, "deadline": "1s"},
        {**FROM_BROKER, "bodies": {"masks": ["a,b"]}},
        {**FROM_BROKER, "bodies": {"masks": ["--out"]}},
    ],
)
def test_what_makes_no_sense_is_refused(spec: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        analysis(spec)


def test_the_samples_are_read_and_survive_being_written() -> None:
    found = parse_resources(SAMPLE.read_text("utf-8"), "sample").analyses
    assert [each.metadata.name for each in found] == ["departures-nightly", "incident"]
    for each in found:
        assert JournalAnalysis.model_validate_json(each.model_dump_json(by_alias=True)) == each


def test_two_of_one_name_are_a_conflict() -> None:
    text = SAMPLE.read_text("utf-8").replace("name: incident", "name: departures-nightly")
    with pytest.raises(ValueError, match="JournalAnalysis departures-nightly is already in"):
        parse_resources(text, "sample")
