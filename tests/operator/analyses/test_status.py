from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from analysis_objects import NIGHTLY, analysis_subject

from lockkeeper_operator.analyses.status.facts import AnalysisFacts
from lockkeeper_operator.analyses.status.latest import latest_run
from lockkeeper_operator.analyses.status.status import after_refusal, analysis_status
from lockkeeper_operator.analyses.subject import AnalysisSubject
from lockkeeper_operator.kubernetes.children.steps import Conflict, Wait
from lockkeeper_operator.kubernetes.jobs import Run

NOW = datetime(2027, 3, 1, 3, 10, tzinfo=UTC)
T1, T2 = "2027-03-01T03:00:00Z", "2027-03-01T03:05:00Z"


def a_run(name: str = "nightly-1", state: Any = "Running", **more: Any) -> Run:
    return Run(name=name, kind="Job", uid="u", state=state, created=T1, **more)


def status_of(
    *runs: Run,
    subject: AnalysisSubject | None = None,
    previous: dict[str, Any] | None = None,
    now: datetime = NOW,
    **facts: Any,
) -> dict[str, Any] | None:
    latest = runs[0] if runs else None
    found = AnalysisFacts(latest=latest, **facts)
    return analysis_status(found, runs, subject or analysis_subject(), previous or {}, 4, now)


def conditions(status: dict[str, Any] | None) -> dict[str, tuple[str, str]]:
    assert status is not None
    return {each["type"]: (each["status"], each["reason"]) for each in status["conditions"]}


def test_a_run_goes_through_all_conditions() -> None:
    told = [
        conditions(status_of(a_run(state=state)))
        for state in ("Submitted", "Running", "Succeeded", "Failed")
    ]
    assert [each["Submitted"][0] for each in told] == ["True"] * 4
    assert [each["Running"][0] for each in told] == ["False", "True", "False", "False"]
    assert [each["Succeeded"][0] for each in told] == ["Unknown", "Unknown", "True", "False"]
    assert [each["Failed"][0] for each in told] == ["Unknown", "Unknown", "False", "True"]


def test_of_a_failure_the_last_lines_are_in_the_condition_and_the_history() -> None:
    found = status_of(a_run(state="Failed", finished=T2, message="no journal in /var/lib"))
    assert found is not None
    (failed,) = [each for each in found["conditions"] if each["type"] == "Failed"]
    assert failed["message"] == "no journal in /var/lib"
    assert found["history"][0]["message"] == "no journal in /var/lib"
    assert "result" not in found


def test_progress_is_told_while_it_runs() -> None:
    said = {"step": "report: totals", "tasks": 8, "completed": 3}
    found = status_of(a_run(progress=said))
    assert found is not None
    assert found["progressText"] == "report: totals (3/8)"
    ended = status_of(a_run(state="Succeeded", progress=said))
    assert ended is not None
    assert "progress" not in ended
    odd = status_of(a_run(progress={"step": 7, "tasks": "many", "completed": -3}))
    assert odd is not None
    assert odd["progressText"] == "7"


@pytest.mark.parametrize(
    ("output", "result"),
    [
        ({}, "http://nightly-page.airport.svc.cluster.local:8080/nightly-1/"),
        ({"claim": {"name": "results", "path": "a"}}, "claim results:/a/nightly-1"),
        ({"path": "s3://reports/b/"}, "s3://reports/b/nightly-1"),
        ({"path": "s3://b/x?region=eu-west-1"}, "s3://b/x/nightly-1?region=eu-west-1"),
    ],
)
def test_where_results_are_is_told_and_stays_known(output: dict[str, Any], result: str) -> None:
    subject = analysis_subject(output=output, schedule=NIGHTLY)
    done = status_of(a_run(state="Succeeded", finished=T2), subject=subject)
    assert done is not None
    assert (done["result"], done["lastSuccessfulTime"]) == (result, T2)
    later = status_of(a_run("nightly-2"), subject=subject, previous=done)
    assert later is not None
    assert later["result"] == result
    assert [each["state"] for each in later["history"]] == ["Running", "Succeeded"]


def test_nothing_is_written_when_nothing_has_changed() -> None:
    first = status_of(a_run())
    assert status_of(a_run(), previous=first, now=NOW + timedelta(hours=1)) is None
    assert status_of(a_run(state="Succeeded"), previous=first) is not None


def test_a_run_that_does_not_say_when_it_ended_keeps_the_time_it_was_first_seen() -> None:
    first = status_of(a_run(state="Succeeded"))
    assert status_of(a_run(state="Succeeded"), previous=first, now=NOW + timedelta(1)) is None


def test_how_a_run_ended_is_told_as_before_when_its_job_is_removed() -> None:
    subject = with_rules()
    for run in (
        a_run(subject.run, "Succeeded", finished=T2, progress={"broken": ["lag > 1h: ORDERS"]}),
        a_run(subject.run, "Failed", finished=T2, message="no journal in /var/lib"),
    ):
        told = status_of(run, subject=subject)
        assert told is not None
        latest = latest_run((), subject, told)
        facts = AnalysisFacts(latest=latest, there=True)
        assert analysis_status(facts, (), subject, told, 4, NOW + timedelta(1)) is None


def test_of_runs_the_one_that_the_spec_asks_for_is_told_and_of_a_schedule_the_latest() -> None:
    first, second = analysis_subject(since="24h"), analysis_subject(since="48h")
    done, running = a_run(first.run, "Succeeded", finished=T2), a_run(second.run)
    status = status_of(running, done, subject=second)
    assert status is not None
    assert latest_run((running, done), second, {}) == running
    assert latest_run((running, done), first, {}) == done
    # Another question is another run: how the one before ended says nothing about it.
    assert latest_run((done,), second, status) is None
    back = latest_run((running,), first, status)
    assert back is not None
    assert (back.name, back.state, back.finished) == (first.run, "Succeeded", T2)
    regular = analysis_subject(schedule=NIGHTLY)
    assert latest_run((running, done), regular, {}) == running
    last = latest_run((), regular, {"history": [{"name": "nightly-9", "state": "Failed"}]})
    assert last is not None
    assert (last.name, last.state) == ("nightly-9", "Failed")
    assert latest_run((), regular, {}) is None


def nightly(day: int, state: Any) -> Run:
    at = f"2027-03-0{day}T03:0"
    times = {"started": f"{at}0:00Z", "finished": f"{at}5:00Z"}
    return replace(a_run(f"nightly-{day}", state, **times), created=f"{at}0:00Z")


@pytest.mark.parametrize("state", ["Succeeded", "Failed"])
def test_of_a_schedule_the_latest_run_is_told_also_when_it_alone_is_removed(state: Any) -> None:
    subject = analysis_subject(schedule={**NIGHTLY, "failedHistoryLimit": 2})
    earlier, latest = nightly(1, "Succeeded"), nightly(2, state)
    before = status_of(latest, earlier, subject=subject)
    assert before is not None
    assert [each["name"] for each in before["history"]] == ["nightly-2", "nightly-1"]
    told = latest_run((earlier,), subject, before)
    assert told is not None
    assert (told.name, told.state) == ("nightly-2", state)
    facts = AnalysisFacts(latest=told)
    assert analysis_status(facts, (earlier,), subject, before, 4, NOW) is None
    # The next one is the latest, and none of them is forgotten.
    third = nightly(3, "Failed")
    assert latest_run((third, earlier), subject, before) == third
    after = status_of(third, earlier, subject=subject, previous=before)
    assert after is not None
    assert [each["name"] for each in after["history"]] == ["nightly-3", "nightly-2", "nightly-1"]
    assert after["lastSuccessfulTime"] == before["lastSuccessfulTime"]


def test_the_time_of_the_last_success_never_goes_back() -> None:
    subject = analysis_subject(schedule=NIGHTLY)
    previous = {"lastSuccessfulTime": "2027-03-02T03:05:00Z"}
    status = status_of(nightly(1, "Succeeded"), subject=subject, previous=previous)
    assert status is not None
    assert status["lastSuccessfulTime"] == "2027-03-02T03:05:00Z"


def test_history_has_limits() -> None:
    subject = analysis_subject(schedule={**NIGHTLY, "successfulHistoryLimit": 2})
    status: dict[str, Any] = {}
    for number in range(9):
        state = "Failed" if number % 3 == 0 else "Succeeded"
        run = a_run(f"nightly-{number}", state, finished=T2)
        status = status_of(run, subject=subject, previous=status) or status
    assert [each["name"] for each in status["history"]] == ["nightly-8", "nightly-7", "nightly-6"]


def test_a_run_that_vanishes_before_its_end_is_none() -> None:
    first = status_of(a_run())
    found = status_of(previous=first)
    assert found is not None
    assert found["history"] == []


@pytest.mark.parametrize(
    ("facts", "verdict"),
    [
        ({"missing_api": "spark.apache.org/v1"}, ("False", "EngineMissing")),
        ({"steps": (Conflict("Job", "a", "Broker b"),)}, ("False", "Conflict")),
        ({"refusal": "no quota"}, ("False", "Refused")),
        ({"steps": (Wait("ClaimMissing", "none"),)}, ("False", "ClaimMissing")),
        ({"scheduled": True, "there": True}, ("True", "Scheduled")),
        ({}, ("Unknown", "NotBegun")),
    ],
)
def test_why_nothing_was_begun_has_a_name(facts: dict[str, Any], verdict: tuple[str, str]) -> None:
    found = status_of(**facts)
    assert conditions(found)["Submitted"] == verdict
    assert found is not None
    assert found["state"] == verdict[1]


def test_refusals_are_counted_until_one_goes_well() -> None:
    twice = after_refusal(after_refusal({}, "no quota", NOW), "no quota", NOW)
    assert twice["submission"]["failures"] == 2
    still = status_of(previous=twice, refusal="no quota")
    assert still is not None
    assert still["submission"]["failures"] == 2
    begun = status_of(a_run(), previous=still)
    assert begun is not None
    assert "submission" not in begun


def test_a_driver_that_does_not_start_says_so() -> None:
    found = status_of(a_run(state="Submitted", trouble="ImagePullBackOff"))
    assert conditions(found)["Running"] == ("False", "ImagePullBackOff")


def test_a_run_whose_executors_wait_says_so() -> None:
    found = status_of(a_run(idle="2 executors do not start: Unschedulable"))
    assert conditions(found)["Running"] == ("True", "ExecutorsWait")


def with_rules() -> AnalysisSubject:
    return analysis_subject(rules=["p99 > 5s for 10m"])


def kept(status: dict[str, Any] | None) -> tuple[str, str] | None:
    return conditions(status).get("RulesKept")


def test_an_analysis_with_rules_tells_whether_they_are_kept() -> None:
    broken = ["p99 > 5s for 10m: ORDERS for 660 s from 2027-03-01T01:00:00Z on, up to 7 s"]
    found = [
        kept(status_of(run, subject=with_rules()))
        for run in (
            a_run(),
            a_run(state="Failed", progress={"broken": broken}),
            a_run(state="Succeeded"),
            a_run(state="Succeeded", progress={"broken": []}),
            a_run(state="Succeeded", progress={"broken": broken}),
            a_run(state="Succeeded", progress={"broken": "odd"}),
        )
    ]
    assert found == [
        ("Unknown", "NotEnded"),
        ("Unknown", "RunFailed"),
        ("Unknown", "NotTold"),
        ("True", "Kept"),
        ("False", "Broken"),
        ("Unknown", "NotTold"),
    ]
    assert kept(status_of(a_run(state="Succeeded", progress={"broken": []}))) is None


def test_what_a_run_found_of_rules_is_remembered_when_its_pod_is_gone() -> None:
    told = a_run(state="Succeeded", finished=T2, progress={"broken": ["lag > 1h: ORDERS"]})
    before = status_of(told, subject=with_rules())
    assert before is not None
    assert before["history"][0]["brokenRules"] == ["lag > 1h: ORDERS"]
    gone = a_run(state="Succeeded", finished=T2)
    assert status_of(gone, subject=with_rules(), previous=before) is None
