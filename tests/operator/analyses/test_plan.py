"""The plan of an analysis, explored: every order of what cluster, people and operator do."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from analysis_objects import NIGHTLY, all_of, analysis_subject

from lockkeeper_operator.analyses.observed import ObservedAnalysis
from lockkeeper_operator.analyses.plan import (
    BACK_OFF,
    SUSPENDED,
    analysis_plan,
    due_in,
    submission_delay,
)
from lockkeeper_operator.analyses.status.facts import AnalysisFacts
from lockkeeper_operator.analyses.status.status import after_refusal, analysis_status
from lockkeeper_operator.analyses.subject import AnalysisSubject
from lockkeeper_operator.brokers.journal import Journal
from lockkeeper_operator.kubernetes.children.child_steps import stamped
from lockkeeper_operator.kubernetes.children.steps import (
    Apply,
    Conflict,
    Create,
    Delete,
    Step,
    Wait,
)
from lockkeeper_operator.kubernetes.manifests import Key, Manifest, key_of

START = datetime(2027, 3, 1, 3, tzinfo=UTC)
RUN_KINDS = ("Job", "SparkApplication")
TTL = 60


def there(subject: AnalysisSubject, *without: str) -> dict[Key, Manifest]:
    """All children as an API server has them."""
    return {key: born(child) for key, child in all_of(subject).items() if key[0] not in without}


def born(manifest: Manifest, status: Manifest | None = None) -> Manifest:
    child = stamped(manifest)
    more = {
        "uid": f"uid-{manifest['metadata']['name']}",
        "creationTimestamp": "2027-03-01T03:00:00Z",
    }
    return {**child, "metadata": {**child["metadata"], **more}, "status": status or {}}


def planned(
    observed: ObservedAnalysis, subject: AnalysisSubject, now: datetime = START
) -> tuple[Step, ...]:
    return analysis_plan(observed, subject, now)


def reasons(steps: tuple[Step, ...]) -> list[str]:
    return [step.reason for step in steps if isinstance(step, Wait)]


@dataclass(frozen=True)
class World:
    """One analysis, single run: what the API server has of it, in a hashable form.

    *runs* are names and states of Jobs, *remembered* those whose end is in the status.
    """

    since: str = "24h"
    suspended: bool = False
    runs: tuple[tuple[str, str], ...] = ()
    remembered: tuple[tuple[str, str], ...] = ()
    made: tuple[str, ...] = ()
    supports: bool = False
    gone: bool = False


STATUS: dict[str, Manifest] = {
    "Submitted": {},
    "Running": {"ready": 1},
    "Succeeded": {
        "conditions": [{"type": "Complete", "status": "True"}],
        "completionTime": "2027-03-01T03:00:00Z",
    },
    "Failed": {
        "conditions": [
            {"type": "Failed", "status": "True", "lastTransitionTime": "2027-03-01T03:00:00Z"}
        ]
    },
}


def subject_in(world: World) -> AnalysisSubject:
    return analysis_subject(since=world.since, suspend=world.suspended)


def seen_in(world: World) -> ObservedAnalysis:
    subject = subject_in(world)
    children = there(subject, *RUN_KINDS) if world.supports else {}
    for name, state in world.runs:
        job = next(each for key, each in all_of(subject).items() if key[0] == "Job")
        renamed = {**job, "metadata": {**job["metadata"], "name": name}}
        children["Job", name] = born(renamed, STATUS[state])
    history = [{"name": name, "state": state} for name, state in world.remembered]
    return ObservedAnalysis(children=children, status={"history": history})


def operated(world: World, until: int | None = None) -> World:
    """The world after the operator's look at it, killed after so many steps (None: never)."""
    subject, observed = subject_in(world), seen_in(world)
    steps = planned(observed, subject)
    for step in steps[:until]:
        if isinstance(step, Create) and step.manifest["kind"] == "Job":
            name = step.manifest["metadata"]["name"]
            world = replace(
                world, runs=(*world.runs, (name, "Submitted")), made=(*world.made, name)
            )
        elif isinstance(step, Delete):
            assert step.kind == "Job"
            kept = tuple(each for each in world.runs if each[0] != step.name)
            world = replace(world, runs=kept)
        elif isinstance(step, Create | Apply):
            world = replace(world, supports=True)
    if until is not None:
        return world
    facts = AnalysisFacts(latest=observed.runs[0] if observed.runs else None, steps=steps)
    status = analysis_status(facts, observed.runs, subject, observed.status, 1, START)
    known = (status or observed.status)["history"]
    ended = tuple(
        (each["name"], each["state"]) for each in known if each["state"] in ("Succeeded", "Failed")
    )
    return replace(world, remembered=ended)


def successors(world: World) -> Iterator[World]:
    yield operated(world)
    yield operated(world, until=1)
    for name, state in world.runs:
        others = tuple(each for each in world.runs if each[0] != name)
        for after in {"Submitted": ("Running", "Failed"), "Running": ("Succeeded", "Failed")}.get(
            state, ()
        ):
            yield replace(world, runs=(*others, (name, after)))
        if (name, state) in world.remembered:
            yield replace(world, runs=others)
    yield replace(world, suspended=not world.suspended)
    if world.since == "24h":
        yield replace(world, since="48h")


def test_however_things_happen_each_run_is_made_once_and_one_at_a_time() -> None:
    observed, waiting = {World()}, deque([World()])
    while waiting:
        world = waiting.popleft()
        names = [name for name, _ in world.runs]
        assert len(names) == len(set(names)) <= 1, world
        assert len(world.made) == len(set(world.made)), world
        for after in successors(world):
            if after not in observed:
                observed.add(after)
                waiting.append(after)
    assert len(observed) > 100


def test_from_anywhere_the_wanted_run_is_made_and_then_all_is_quiet() -> None:
    for since in ("24h", "48h"):
        world = World(since=since)
        for _ in range(6):
            world = operated(world)
        name = subject_in(world).run
        assert world.made == (name,)
        world = operated(replace(world, runs=((name, "Succeeded"),)))
        assert operated(world) == world
        assert operated(replace(world, runs=())).made == (name,)


@pytest.mark.parametrize("engine", ["sparkApplication", "apache", "native", "local"])
@pytest.mark.parametrize("schedule", [None, NIGHTLY])
def test_at_rest_nothing_is_done(engine: Any, schedule: Any) -> None:
    if engine == "apache" and schedule is not None:
        return
    subject = analysis_subject(engine, schedule=schedule)
    assert planned(ObservedAnalysis(children=there(subject)), subject) == ()


def test_a_run_that_is_there_is_never_changed_but_a_schedule_is() -> None:
    elsewhere = Journal(claim="departures-journal", one_node=True, node="b")
    single = analysis_subject()
    moved = planned(ObservedAnalysis(children=there(single)), analysis_subject(journal=elsewhere))
    assert "Job" not in [step.manifest["kind"] for step in moved if isinstance(step, Apply)]
    regular = analysis_subject(schedule=NIGHTLY)
    steps = planned(
        ObservedAnalysis(children=there(regular)),
        analysis_subject(journal=elsewhere, schedule=NIGHTLY),
    )
    assert "CronJob" in [step.manifest["kind"] for step in steps if isinstance(step, Apply)]


@pytest.mark.parametrize("problem", ["BrokerMissing", "ClaimMissing", "ClaimExclusive"])
def test_without_a_journal_no_run_begins(problem: str) -> None:
    subject = analysis_subject(journal=Journal(problem=problem, why="because"))
    assert reasons(planned(ObservedAnalysis(), subject)) == [problem]


def test_what_is_suspended_does_not_begin() -> None:
    assert reasons(planned(ObservedAnalysis(), analysis_subject(suspend=True))) == [SUSPENDED]


def test_after_a_refusal_it_waits_longer_each_time() -> None:
    subject = analysis_subject()
    status: Manifest = {}
    children = there(subject, "Job")
    waits = []
    for _ in range(7):
        status = after_refusal(status, "no quota", START)
        observed = ObservedAnalysis(children=children, status=status)
        assert reasons(planned(observed, subject)) == [BACK_OFF]
        due = due_in(status, subject, START)
        assert due is not None
        waits.append(due)
        assert [type(step) for step in planned(observed, subject, START + due)] == [Create]
        # Then it is tried: a time that has passed asks for nothing.
        assert due_in(status, subject, START + due) is None
    assert waits == sorted(waits)
    assert (waits[0], waits[-1]) == (timedelta(seconds=10), timedelta(minutes=5))
    assert submission_delay(10_000) == timedelta(minutes=5)


def test_a_single_run_that_has_ended_goes_after_its_time_with_its_analysis() -> None:
    subject = analysis_subject(ttlSecondsAfterFinished=TTL)
    ended = {"name": subject.run, "state": "Succeeded", "finished": "2027-03-01T03:00:00Z"}
    observed = ObservedAnalysis(children=there(subject), status={"history": [ended]})
    soon, then, later = (START + timedelta(seconds=each) for each in (20, TTL, TTL + 20))
    assert planned(observed, subject, soon) == ()
    assert due_in(observed.status, subject, soon) == timedelta(seconds=40)
    gone = (Delete("JournalAnalysis", "nightly", "uid-of-nightly"),)
    assert planned(observed, subject, then) == gone
    assert due_in(observed.status, subject, later) == timedelta(0)
    assert due_in({}, subject, later) is None


def test_of_a_schedule_only_runs_go() -> None:
    subject = analysis_subject(schedule=NIGHTLY, ttlSecondsAfterFinished=TTL)
    ended = {"name": "nightly", "state": "Succeeded", "finished": "2027-03-01T03:00:00Z"}
    observed = ObservedAnalysis(children=there(subject), status={"history": [ended]})
    assert planned(observed, subject, START + timedelta(days=1)) == ()
    cron = all_of(subject)["CronJob", "nightly"]["spec"]["jobTemplate"]["spec"]
    assert cron["ttlSecondsAfterFinished"] == TTL


def test_what_belongs_to_somebody_else_is_left_alone() -> None:
    subject = analysis_subject()
    children = there(subject)
    for child in children.values():
        child["metadata"]["ownerReferences"] = [
            {"kind": "Broker", "name": "other", "uid": "x", "controller": True}
        ]
    steps = planned(ObservedAnalysis(children=children), subject)
    assert len(steps) == len(children)
    assert {type(step) for step in steps} == {Conflict}


def test_runs_that_a_schedule_made_are_not_the_operators_to_end() -> None:
    subject = analysis_subject(schedule=NIGHTLY)
    job = born({"kind": "Job", "metadata": {"name": "nightly-1", "annotations": {}}})
    job["metadata"]["ownerReferences"] = [
        {"kind": "CronJob", "name": "nightly", "uid": "uid-nightly", "controller": True}
    ]
    children = {**there(subject), key_of(job): job}
    assert planned(ObservedAnalysis(children=children), subject) == ()
