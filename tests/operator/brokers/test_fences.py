from typing import Any

import pytest
from cluster_objects import subject

from lockkeeper_operator.brokers.desired import config_map
from lockkeeper_operator.brokers.desired.target import Desired, desired_of
from lockkeeper_operator.brokers.observed import Observed, Pod
from lockkeeper_operator.brokers.plan import plan
from lockkeeper_operator.brokers.pods.fences import fence_steps
from lockkeeper_operator.brokers.pods.rollout import pod_steps
from lockkeeper_operator.brokers.status import master_elected, standbys_ready
from lockkeeper_operator.brokers.status.facts import Facts
from lockkeeper_operator.brokers.steps import Fence
from lockkeeper_operator.polling.report import Report

ANNOTATION = "lockkeeper.dev/fenced"


def goal(fenced: str, **options: Any) -> Desired:
    return desired_of(subject(replicas=2, annotations={ANNOTATION: fenced}, **options))


def pod(number: int, role: str, revision: str = "") -> Pod:
    report = Report(role, takes_over=role == "standby")
    return Pod(f"departures-{number}", revision=revision, role=role, ready=True, report=report)


def test_a_pod_that_runs_is_told_before_anything_else_happens() -> None:
    pods = (pod(0, "master"), pod(1, "standby"))
    assert plan(Observed(pods=pods), goal("departures-0"))[0] == Fence("departures-0", True)


def test_one_that_is_not_fenced_any_more_is_told_so() -> None:
    pods = [pod(0, "fenced"), pod(1, "master")]
    assert list(fence_steps(pods, goal("").fenced)) == [Fence("departures-0", False)]


def test_nothing_is_said_twice_and_nothing_to_the_silent() -> None:
    silent = Pod("departures-1")
    both = goal("departures-0,departures-1").fenced
    assert list(fence_steps([pod(0, "fenced"), silent], both)) == []


def test_while_paused_nobody_is_told() -> None:
    pods = (pod(0, "master"), pod(1, "standby"))
    assert plan(Observed(pods=pods), goal("departures-0", paused=True)) == ()


def test_names_of_others_pods_count_for_nothing() -> None:
    assert goal("departures-1, others-0,departures-7").fenced == {"departures-1"}


def test_a_broker_that_starts_reads_it_beside_its_configuration() -> None:
    given = subject(replicas=2, annotations={ANNOTATION: "departures-1"})
    built = config_map.build(given)
    assert built["data"]["fenced"] == "departures-1\n"
    assert "fenced" not in config_map.build(subject(replicas=2))["data"]


@pytest.mark.parametrize(("value", "accepted"), [("true", True), ("", False), ("yes", False)])
def test_an_accepted_loss_is_told_beside_the_configuration(value: str, accepted: bool) -> None:
    told = subject(replicas=2, annotations={"lockkeeper.dev/accept-loss": value})
    assert config_map.build(told)["data"].get("accept-loss") == ("true\n" if accepted else None)
    # It takes effect when a pod starts: those that run are left alone.
    assert desired_of(told).revision == desired_of(subject(replicas=2)).revision


def test_a_fenced_pod_is_not_replaced_by_a_new_revision() -> None:
    wanted = goal("departures-1")
    pods = [pod(0, "master", wanted.revision), pod(1, "fenced", "old")]
    assert pod_steps(pods, wanted) == ()


def test_conditions_tell_of_fences() -> None:
    one = Facts(Observed(pods=(pod(0, "master"), pod(1, "fenced"))), goal("departures-1"))
    assert "fenced: departures-1" in standbys_ready.condition(one).message
    both = goal("departures-0,departures-1")
    nobody = Facts(Observed(pods=(pod(0, "fenced"), pod(1, "fenced"))), both)
    assert master_elected.condition(nobody).reason == "Fenced"
