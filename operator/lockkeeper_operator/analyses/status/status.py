"""The status of an analysis."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from lockkeeper_api.analysis.agreements import RULES_MAX
from lockkeeper_api.analysis.status import (
    BROKEN_CHARACTERS_MAX,
    MESSAGE_CHARACTERS_MAX,
    AnalysisRun,
    JournalAnalysisStatus,
    Progress,
    Submission,
)
from lockkeeper_operator.analyses.desired.arguments import page_address, result_location
from lockkeeper_operator.analyses.status import (
    failed,
    rules_kept,
    running,
    submitted,
    succeeded,
)
from lockkeeper_operator.analyses.status.facts import AnalysisFacts
from lockkeeper_operator.analyses.subject import AnalysisSubject
from lockkeeper_operator.kubernetes.conditions import dated
from lockkeeper_operator.kubernetes.jobs import ENDED, Run
from lockkeeper_operator.kubernetes.times import written
from lockkeeper_operator.kubernetes.verdict import NO, YES, Verdict

CONDITIONS = (submitted.condition, running.condition, succeeded.condition, failed.condition)
SINGLE_RUNS_KEPT = 10
"""In the history of an analysis without a schedule."""
STEP_CHARACTERS_MAX = 256


def analysis_status(
    facts: AnalysisFacts,
    runs: tuple[Run, ...],
    subject: AnalysisSubject,
    previous: Mapping[str, Any],
    generation: int,
    now: datetime,
) -> dict[str, Any] | None:
    """Return the status to be written, None if *previous* says the same already."""
    at = written(now)
    history = _history(runs, subject, previous, at)
    verdicts = [condition(facts) for condition in CONDITIONS]
    if subject.spec.rules:
        verdicts.append(rules_kept.condition(_judged(facts, history)))
    progress = _progress(facts.latest)
    last = next((each for each in history if each.state == "Succeeded"), None)
    successes = (last.finished if last else None, previous.get("lastSuccessfulTime"))
    begun = verdicts[0].status == YES
    status = JournalAnalysisStatus(
        observed_generation=generation,
        conditions=dated(verdicts, dict(previous), generation, at),
        engine=subject.engine,
        state=_state(facts, verdicts[0].reason, begun),
        progress=progress,
        progress_text=None if progress is None else _text(progress),
        result=last.result if last is not None else previous.get("result"),
        page=page_address(subject) or None,
        last_successful_time=max(filter(None, successes), default=None),
        history=history,
        submission=None if begun else _submission(previous),
    )
    found: dict[str, Any] = status.model_dump(mode="json", by_alias=True, exclude_none=True)
    return None if found == previous else found


INVALID, DISABLED = "InvalidSpec", "Disabled"


def refused_status(
    reason: str, message: str, previous: Mapping[str, Any], generation: int, now: str
) -> dict[str, Any] | None:
    """Return the status of an analysis that is not carried out: its spec is none, or this operator
    carries out none. None if it is written already.
    """
    verdict = Verdict("Submitted", NO, reason, message)
    condition = dated([verdict], dict(previous), generation, now)[0]
    found = {
        **previous,
        "observedGeneration": generation,
        "state": reason,
        "conditions": [condition.model_dump(mode="json", by_alias=True, exclude_none=True)],
    }
    return None if found == previous else found


def after_refusal(previous: Mapping[str, Any], message: str, now: datetime) -> dict[str, Any]:
    """Return *previous* with one more attempt that the API server refused."""
    failures = previous.get("submission", {}).get("failures", 0) + 1
    submission = Submission(
        failures=failures, last=written(now), message=message[:MESSAGE_CHARACTERS_MAX]
    )
    return {**previous, "submission": submission.model_dump(mode="json", by_alias=True)}


def _submission(previous: Mapping[str, Any]) -> Submission | None:
    known = previous.get("submission")
    return None if not known else Submission.model_validate(known)


def _state(facts: AnalysisFacts, reason: str, begun: bool) -> str:
    """Return how it is, in a word."""
    if facts.latest is not None and (begun or facts.latest.ended):
        return facts.latest.state
    return reason


def _progress(run: Run | None) -> Progress | None:
    if run is None or run.ended or not run.progress:
        return None
    said = run.progress
    return Progress(
        step=str(said.get("step", ""))[:STEP_CHARACTERS_MAX],
        tasks=_count(said.get("tasks")),
        completed=_count(said.get("completed")),
    )


def _judged(facts: AnalysisFacts, history: Iterable[AnalysisRun]) -> AnalysisFacts:
    """Return *facts* with what the latest run tells about rules."""
    name = None if facts.latest is None else facts.latest.name
    told = next((each.broken_rules for each in history if each.name == name), None)
    return facts if told is None else replace(facts, broken=tuple(told))


def _broken_rules(run: Run) -> list[str] | None:
    """Return the rules that a run that succeeded found broken, as its driver wrote them."""
    said = run.progress.get("broken")
    if run.state != "Succeeded" or not isinstance(said, list):
        return None
    return [str(each)[:BROKEN_CHARACTERS_MAX] for each in said[:RULES_MAX]]


def _count(value: object) -> int:
    return max(value, 0) if isinstance(value, int) else 0


def _text(progress: Progress) -> str:
    if not progress.tasks:
        return progress.step
    return f"{progress.step} ({progress.completed}/{progress.tasks})"


def _history(
    runs: tuple[Run, ...], subject: AnalysisSubject, previous: Mapping[str, Any], now: str
) -> list[AnalysisRun]:
    """Return the runs that are there, and those that were: ended ones are kept, up to limits.

    The latest comes first, also where it is gone and an earlier one is there.
    """
    earlier = {each["name"]: each for each in previous.get("history", ())}
    present = [_told(run, subject, earlier.get(run.name), now) for run in runs]
    names = {each.name for each in present}
    gone = [
        AnalysisRun.model_validate(each)
        for name, each in earlier.items()
        if name not in names and each["state"] in ENDED
    ]
    by_time = sorted([*present, *gone], key=lambda each: each.started or "", reverse=True)
    return list(_within_limits(by_time, subject))


def _told(
    run: Run, subject: AnalysisSubject, before: Mapping[str, Any] | None, now: str
) -> AnalysisRun:
    """Return a run for the history. One that ended without saying when did so now."""
    known = before or {}
    broken = _broken_rules(run)
    ended = run.finished or known.get("finished") or now
    return AnalysisRun(
        name=run.name,
        state=run.state,
        started=run.started or known.get("started") or run.created or None,
        finished=ended if run.ended else None,
        result=result_location(subject, run.name) if run.state == "Succeeded" else None,
        message=run.message[:MESSAGE_CHARACTERS_MAX] if run.state == "Failed" else None,
        broken_rules=known.get("brokenRules") if broken is None else broken,
    )


def _within_limits(
    history: Iterable[AnalysisRun], subject: AnalysisSubject
) -> Iterable[AnalysisRun]:
    schedule = subject.spec.schedule
    limits = {"Succeeded": SINGLE_RUNS_KEPT, "Failed": SINGLE_RUNS_KEPT}
    if schedule is not None:
        limits["Succeeded"] = max(schedule.successful_history_limit, 1)
        limits["Failed"] = max(schedule.failed_history_limit, 1)
    for each in history:
        if each.state in limits:
            limits[each.state] -= 1
            if limits[each.state] < 0:
                continue
        yield each
