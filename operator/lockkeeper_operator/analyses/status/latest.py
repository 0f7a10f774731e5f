"""Latest run: the one that the conditions of an analysis are about.

Without a schedule that is the run which the spec asks for, and no other. A run that has ended is
told of also when its Job has been removed: the status remembers it.
"""

from collections.abc import Mapping
from typing import Any

from lockkeeper_operator.analyses.subject import AnalysisSubject
from lockkeeper_operator.kubernetes.jobs import ENDED, Run


def latest_run(
    runs: tuple[Run, ...], subject: AnalysisSubject, previous: Mapping[str, Any]
) -> Run | None:
    """Return it, None where none has begun; *runs* are there, *previous* is the status so far."""
    names = {each.name for each in runs}
    gone = [
        _remembered(told, subject)
        for told in previous.get("history", ())
        if told["state"] in ENDED and told["name"] not in names
    ]
    meant = [each for each in (*runs, *gone) if _is_meant(each.name, subject)]
    return max(meant, key=_begun, default=None)


def _begun(run: Run) -> str:
    """Return when a run began, as far as it tells; one that is gone tells no creation."""
    return run.started or run.created


def _is_meant(name: str, subject: AnalysisSubject) -> bool:
    return subject.spec.schedule is not None or name == subject.run


def _remembered(told: Mapping[str, Any], subject: AnalysisSubject) -> Run:
    """Return a run that is there no more."""
    return Run(
        name=told["name"],
        kind="SparkApplication" if subject.engine in ("sparkApplication", "apache") else "Job",
        uid="",
        state=told["state"],
        created="",
        started=told.get("started"),
        finished=told.get("finished"),
        message=told.get("message", ""),
    )
