"""Facts from which the conditions of an analysis follow."""

from dataclasses import dataclass

from lockkeeper_operator.kubernetes.children.steps import Step
from lockkeeper_operator.kubernetes.jobs import Run


@dataclass(frozen=True, slots=True)
class AnalysisFacts:
    """An analysis: its latest run, what was planned, and what kept it from being begun.

    *there* says that the run, or what makes runs, is there, or that the run was, and has ended.
    *missing_api* is an API that the engine needs and the cluster does not know, *refusal* what
    the API server said to the run when it was tried last. *broken* are the rules that the latest
    run found broken, None where it told nothing about rules.
    """

    latest: Run | None = None
    steps: tuple[Step, ...] = ()
    scheduled: bool = False
    there: bool = False
    missing_api: str = ""
    refusal: str = ""
    broken: tuple[str, ...] | None = None
