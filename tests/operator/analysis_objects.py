"""JournalAnalyses as an API server holds them, and what the operator makes of them."""

from typing import Any

from lockkeeper_api.journal_analysis import JournalAnalysisSpec
from lockkeeper_operator.analyses.desired.children import run, supports
from lockkeeper_operator.analyses.engine import ChosenEngine
from lockkeeper_operator.analyses.subject import AnalysisSubject
from lockkeeper_operator.brokers.journal import Journal
from lockkeeper_operator.kubernetes.manifests import Manifest

FROM_BROKER: dict[str, Any] = {"source": {"broker": "departures"}}
NIGHTLY = {"cron": "0 3 * * *", "timeZone": "Europe/Berlin"}
JOURNAL = Journal(claim="departures-journal", path="kahadb", group=10001, one_node=True, node="a")
ENGINES: tuple[ChosenEngine, ...] = ("sparkApplication", "apache", "native", "local")


def analysis_subject(
    engine: ChosenEngine = "native",
    journal: Journal = JOURNAL,
    namespace: str = "airport",
    **spec: Any,
) -> AnalysisSubject:
    return AnalysisSubject(
        name="nightly",
        namespace=namespace,
        uid="uid-of-nightly",
        spec=JournalAnalysisSpec.model_validate({**FROM_BROKER, **spec}),
        journal=journal,
        engine=engine,
        default_image="example/lockkeeper-analytics:1",
    )


def all_of(subject: AnalysisSubject) -> dict[tuple[str, str], Manifest]:
    """Every child by kind and name."""
    found = (*supports(subject), run(subject))
    return {(each["kind"], each["metadata"]["name"]): each for each in found}


def templates(subject: AnalysisSubject) -> dict[str, Manifest]:
    """The pod templates of driver and executor, wherever the engine has them."""
    manifest = run(subject)
    spec = manifest["spec"]
    if manifest["kind"] == "CronJob":
        spec = spec["jobTemplate"]["spec"]
    if manifest["kind"] == "ScheduledSparkApplication":
        spec = spec["template"]
    if subject.engine in ("native", "local"):
        return {"driver": spec["template"]}
    if subject.engine == "apache":
        return {
            "driver": spec["driverSpec"]["podTemplateSpec"],
            "executor": spec["executorSpec"]["podTemplateSpec"],
        }
    return {"driver": spec["driver"]["template"], "executor": spec["executor"]["template"]}
