"""From what there is of an analysis to the next steps. Pure: the time comes in.

A single run is made once: when it has ended, the status remembers it, and what is left of it is
not made again. Runs of a schedule are made by the cluster, from what is kept up to date here.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from lockkeeper_operator.analyses.desired.children import run, supports
from lockkeeper_operator.analyses.observed import ObservedAnalysis
from lockkeeper_operator.analyses.subject import AnalysisSubject
from lockkeeper_operator.kubernetes.children.child_steps import Children, child_steps, stamped
from lockkeeper_operator.kubernetes.children.ownership import controller_of, stranger
from lockkeeper_operator.kubernetes.children.steps import Conflict, Create, Delete, Step, Wait
from lockkeeper_operator.kubernetes.jobs import ENDED
from lockkeeper_operator.kubernetes.manifests import Key, Manifest, key_of
from lockkeeper_operator.kubernetes.times import parsed

KIND = "JournalAnalysis"
RUN_KEPT = frozenset({"CronJob", "ScheduledSparkApplication"})
"""Kinds whose objects may be changed while they are there."""
FIRST_DELAY = timedelta(seconds=10)
LONGEST_DELAY = timedelta(minutes=5)
SUSPENDED, BACK_OFF, CHILD_ENDS = "Suspended", "BackOff", "ChildEnds"


def analysis_plan(
    observed: ObservedAnalysis, subject: AnalysisSubject, now: datetime
) -> tuple[Step, ...]:
    """Return the next steps about an analysis."""
    expires = _expires(observed.status, subject)
    if expires is not None and expires <= now:
        return (Delete(KIND, subject.name, subject.uid),)
    return (*_support_steps(observed, subject), *_run_steps(observed, subject, now))


def due_in(status: Mapping[str, Any], subject: AnalysisSubject, now: datetime) -> timedelta | None:
    """Return after which time something is to be done that nothing else tells of, None for never.

    *status* is what is told now: an end, or a refusal, that was noted a moment ago counts.
    """
    expires, attempt = _expires(status, subject), _next_attempt(status)
    moments = [] if expires is None else [max(expires, now)]
    if attempt is not None and attempt > now:
        moments.append(attempt)
    return min(moments) - now if moments else None


def submission_delay(failures: int) -> timedelta:
    """Return how long to wait after so many attempts that were refused."""
    doubled: timedelta = FIRST_DELAY * 2 ** min(max(failures - 1, 0), 10)
    return min(doubled, LONGEST_DELAY)


def _support_steps(observed: ObservedAnalysis, subject: AnalysisSubject) -> tuple[Step, ...]:
    """Return the steps about all but the run: runs of a schedule are not the operator's own.

    A claim that it made goes with the analysis, and not before: reports may be in it.
    """
    wanted = supports(subject)
    own_run = key_of(run(subject))
    others = {key: child for key, child in observed.children.items() if key != own_run}
    return tuple(child_steps(subject.owner, wanted, Children(others)))


def _run_steps(
    observed: ObservedAnalysis, subject: AnalysisSubject, now: datetime
) -> tuple[Step, ...]:
    """Return the steps about the run, or about what makes runs by a schedule."""
    manifest = run(subject)
    kind, name = key_of(manifest)
    present = observed.children.get((kind, name))
    if present is not None and "deletionTimestamp" in present["metadata"]:
        return (Wait(CHILD_ENDS, f"{kind} {name} is being deleted"),)
    if present is not None:
        owner = stranger(present, subject.owner)
        if owner:
            return (Conflict(kind, name, owner),)
        if kind not in RUN_KEPT:
            # What is in a run cannot be changed.
            return ()
        there = Children({(kind, name): present})
        return tuple(child_steps(subject.owner, (manifest,), there))
    if _has_ended(observed, name):
        return ()
    waits = _waits(observed, subject, now)
    return (waits,) if waits else (Create(stamped(manifest)),)


def _waits(observed: ObservedAnalysis, subject: AnalysisSubject, now: datetime) -> Wait | None:
    """Return why no run is begun now, None if nothing speaks against it."""
    if subject.spec.suspend and subject.spec.schedule is None:
        return Wait(SUSPENDED, "spec.suspend is set")
    if subject.journal.problem:
        return Wait(subject.journal.problem, subject.journal.why)
    attempt = _next_attempt(observed.status)
    if attempt is not None and attempt > now:
        return Wait(BACK_OFF, observed.status["submission"]["message"])
    ending = [key for key, child in observed.children.items() if _is_older_run(key, child, subject)]
    if ending:
        return Wait(CHILD_ENDS, f"{ending[0][0]} {ending[0][1]} is being ended")
    return None


def _is_older_run(key: Key, child: Manifest, subject: AnalysisSubject) -> bool:
    """Return whether *child* is a run of an earlier spec, which goes before the next begins."""
    controller = controller_of(child)
    own = controller is not None and controller["uid"] == subject.uid
    return own and key[0] in ("Job", "SparkApplication")


def _has_ended(observed: ObservedAnalysis, name: str) -> bool:
    """Return whether the status remembers the end of the run *name*."""
    history = observed.status.get("history", ())
    return any(each["name"] == name and each["state"] in ENDED for each in history)


def _next_attempt(status: Mapping[str, Any]) -> datetime | None:
    """Return when a run that the API server refused may be tried again."""
    submission = status.get("submission")
    if not submission:
        return None
    return parsed(submission["last"]) + submission_delay(submission["failures"])


def _expires(status: Mapping[str, Any], subject: AnalysisSubject) -> datetime | None:
    """Return when a single run's analysis goes, None if it stays."""
    ttl = subject.spec.ttl_seconds_after_finished
    if ttl is None or subject.spec.schedule is not None:
        return None
    name = subject.run
    ends = [each.get("finished") for each in status.get("history", ()) if each["name"] == name]
    if not ends or ends[0] is None:
        return None
    return parsed(ends[0]) + timedelta(seconds=ttl)
