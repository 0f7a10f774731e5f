"""Engines that carry an analysis out."""

from collections.abc import Set
from typing import Literal

from lockkeeper_api.journal_analysis import JournalAnalysisSpec

ChosenEngine = Literal["sparkApplication", "apache", "native", "local"]

KUBEFLOW_API = "sparkoperator.k8s.io/v1beta2"
APACHE_API = "spark.apache.org/v1"


def chosen_engine(
    spec: JournalAnalysisSpec, apis: Set[str], before: str | None = None
) -> ChosenEngine:
    """Return the engine of *spec* in a cluster that knows *apis*, such as `spark.apache.org/v1`.

    *before* is what was chosen for the same spec earlier: it stays, so that an operator of Spark
    which is installed meanwhile makes no second run.
    """
    if spec.engine != "auto":
        return spec.engine
    usable: list[ChosenEngine] = []
    if KUBEFLOW_API in apis:
        usable.append("sparkApplication")
    if APACHE_API in apis and spec.schedule is None:
        usable.append("apache")
    usable.append("native")
    return next((engine for engine in usable if engine == before), usable[0])


def missing_api(engine: ChosenEngine, apis: Set[str]) -> str:
    """Return the API that *engine* needs and the cluster does not know, empty for none."""
    needed = {"sparkApplication": KUBEFLOW_API, "apache": APACHE_API}.get(engine, "")
    return "" if needed in apis else needed
