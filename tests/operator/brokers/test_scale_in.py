from dataclasses import replace

from broker_goals import children, desired

from lockkeeper_operator.brokers.desired.target import Desired
from lockkeeper_operator.brokers.observed import Observed, Pod
from lockkeeper_operator.brokers.plan import plan
from lockkeeper_operator.brokers.steps import Fence, Step
from lockkeeper_operator.kubernetes.children.steps import Apply, Wait
from lockkeeper_operator.polling.report import Report


def pod(number: int, role: str, able: bool = True) -> Pod:
    goal = desired(2)
    report = Report(role, takes_over=able and role == "standby", configuration=goal.configuration)
    return Pod(f"departures-{number}", f"u{number}", goal.revision, role, ready=True, report=report)


def replicas_of(steps: tuple[Step, ...]) -> list[int]:
    """Return what the StatefulSet is to have, where it is told."""
    applied = [step.manifest for step in steps if isinstance(step, Apply)]
    return [each["spec"]["replicas"] for each in applied if each["kind"] == "StatefulSet"]


def after(goal: Desired, *pods: Pod, replicas: int = 3) -> tuple[Step, ...]:
    return plan(Observed(children(desired(replicas)), pods), goal)


def test_standbys_that_go_are_let_go_at_once() -> None:
    steps = after(desired(2), pod(0, "master"), pod(1, "standby"), pod(2, "standby"))
    assert replicas_of(steps) == [2]
    assert not [step for step in steps if isinstance(step, Fence | Wait)]


def test_a_master_that_goes_hands_over_first_to_one_that_stays() -> None:
    pods = (pod(0, "standby"), pod(1, "standby"), pod(2, "master"))
    steps = after(desired(1), *pods)
    # The standby that goes, too, is fenced before the master, or it would be the next.
    fences = [step for step in steps if isinstance(step, Fence)]
    assert fences == [Fence("departures-1", True), Fence("departures-2", True)]
    assert replicas_of(steps) == []
    assert [step.reason for step in steps if isinstance(step, Wait)] == ["HandingOver"]
    # All are fenced, and nobody leads yet.
    fenced = (pod(0, "standby"), pod(1, "fenced"), pod(2, "fenced"))
    steps = after(desired(1), *fenced)
    assert replicas_of(steps) == []
    assert not [step for step in steps if isinstance(step, Fence)]
    # One that stays is the master: now there may be fewer.
    steps = after(desired(1), pod(0, "master"), *fenced[1:])
    assert replicas_of(steps) == [1]
    assert not [step for step in steps if isinstance(step, Fence)]


def test_pods_that_go_may_take_their_labels_away_until_they_have_handed_over() -> None:
    pods = (pod(0, "standby"), pod(1, "standby"), pod(2, "master"))
    assert roles_of(after(desired(1), *pods)) == []
    served = (pod(0, "master"), pod(1, "fenced"), pod(2, "fenced"))
    assert roles_of(after(desired(1), *served)) == [["departures-0"]]


def roles_of(steps: tuple[Step, ...]) -> list[list[str]]:
    """Return which pods brokers may label, where that is told."""
    applied = [step.manifest for step in steps if isinstance(step, Apply)]
    return [each["rules"][0]["resourceNames"] for each in applied if each["kind"] == "Role"]


def test_nobody_is_fenced_while_no_standby_that_stays_is_proven() -> None:
    steps = after(desired(1), pod(0, "standby", able=False), pod(1, "master"), replicas=2)
    assert not [step for step in steps if isinstance(step, Fence)]
    assert replicas_of(steps) == []
    assert [step.reason for step in steps if isinstance(step, Wait)] == ["NoSuccessor"]


def test_who_thinks_better_of_it_gets_everybody_back() -> None:
    pods = (pod(0, "master"), pod(1, "fenced"))
    assert Fence("departures-1", False) in after(desired(2), *pods, replicas=2)


def test_hibernation_asks_nobody() -> None:
    goal = desired(2, hibernated=True)
    assert replicas_of(after(goal, pod(0, "standby"), pod(1, "master"), replicas=2)) == [0]
    assert replace(goal, pods=()) == goal
