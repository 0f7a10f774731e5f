"""A node that is cordoned: its master hands over to a proven standby elsewhere, first of all."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from broker_goals import children, desired
from hypothesis import given
from hypothesis import strategies as st

from lockkeeper_operator.brokers.events import events_of_steps
from lockkeeper_operator.brokers.handovers import (
    AGAIN_SECONDS,
    TAKE_OVER_SECONDS_MAX,
    Handovers,
)
from lockkeeper_operator.brokers.observed import Observed, Pod, pod_of
from lockkeeper_operator.brokers.plan import plan
from lockkeeper_operator.brokers.status import master_elected
from lockkeeper_operator.brokers.status.facts import Facts
from lockkeeper_operator.brokers.status.failover import last_failover
from lockkeeper_operator.brokers.steps import DeletePod, Fence, Step, SwitchOver
from lockkeeper_operator.kubernetes.caches.packing import trimmed
from lockkeeper_operator.kubernetes.children.steps import Wait
from lockkeeper_operator.polling.report import Report

NODES = ("west", "east", "north")
GOAL = desired(3)
CHILDREN = children(GOAL)
KEY = ("default", "departures")


def pod(number: int, role: str, able: bool = True, **more: object) -> Pod:
    report = Report(role, takes_over=able and role == "standby", configuration=GOAL.configuration)
    found = Pod(
        f"departures-{number}", f"u{number}", GOAL.revision, role, ready=True, report=report,
        node=NODES[number],
    )  # fmt: skip
    return replace(found, **more)  # type: ignore[arg-type]


def steps(*pods: Pod, cordoned: tuple[str, ...] = ("west",)) -> tuple[Step, ...]:
    return plan(Observed(CHILDREN, pods, cordoned=frozenset(cordoned)), GOAL)


def fences(found: tuple[Step, ...]) -> list[Fence]:
    return [step for step in found if isinstance(step, Fence)]


def waits(found: tuple[Step, ...]) -> list[str]:
    return [step.reason for step in found if isinstance(step, Wait)]


def test_a_master_on_a_cordoned_node_hands_over_and_its_pod_stays() -> None:
    found = steps(pod(0, "master"), pod(1, "standby"), pod(2, "standby"))
    assert fences(found) == [Fence("departures-0", True)]
    assert waits(found) == ["HandingOver"]
    assert not [step for step in found if isinstance(step, DeletePod | SwitchOver)]


def test_standbys_that_are_to_go_do_not_take_over() -> None:
    pods = (pod(0, "master"), pod(1, "standby"), pod(2, "standby"))
    found = steps(*pods, cordoned=("west", "north"))
    # The standby before the master, or it would be the next.
    assert fences(found) == [Fence("departures-2", True), Fence("departures-0", True)]


def test_they_wait_until_another_leads_and_stand_by_again() -> None:
    fenced = pod(0, "fenced")
    between = steps(fenced, pod(1, "standby", able=False), pod(2, "standby", able=False))
    assert fences(between) == []
    assert waits(between) == ["HandingOver"]
    for role in ("recovering", "master"):
        after = steps(fenced, pod(1, role), pod(2, "standby"))
        assert fences(after) == [Fence("departures-0", False)]
    assert steps(pod(0, "standby"), pod(1, "master"), pod(2, "standby")) == ()


def test_without_a_proven_standby_elsewhere_nothing_is_done() -> None:
    for other in (
        pod(1, "standby", able=False),
        pod(1, "standby", ready=False),
        pod(1, "standby", terminating=True),
        pod(1, "standby", disrupted=True),
        pod(1, "standby", node="west"),
    ):
        assert fences(steps(pod(0, "master"), other)) == []
    everywhere = steps(pod(0, "master"), pod(1, "standby"), pod(2, "standby"), cordoned=NODES)
    assert fences(everywhere) == []
    assert waits(everywhere) == ["MasterStays"]
    (event,) = events_of_steps(everywhere)
    assert (event.type, event.reason) == ("Warning", "MasterStays")
    assert "no standby on another node is proven" in event.message


def test_a_broker_of_one_replica_waits_for_nobody() -> None:
    alone = desired(1)
    observed = Observed(children(alone), (pod(0, "master"),), cordoned=frozenset(NODES))
    assert not [step for step in plan(observed, alone) if isinstance(step, Fence | Wait)]


def test_nobody_is_blamed_before_brokers_were_asked() -> None:
    unasked = replace(pod(0, "master"), report=None)
    assert waits(steps(unasked, pod(1, "standby", able=False), pod(2, "standby"))) == [
        "HandingOver"
    ]
    assert (
        waits(steps(unasked, pod(1, "standby", report=None), pod(2, "standby", report=None))) == []
    )


def test_when_the_one_that_stays_dies_meanwhile_the_others_may_lead() -> None:
    gone = pod(1, "", ready=False, report=None)
    assert fences(steps(pod(0, "fenced"), gone)) == [Fence("departures-0", False)]


def test_who_uncordons_the_node_gets_its_pod_back() -> None:
    found = steps(pod(0, "fenced"), pod(1, "standby"), pod(2, "standby"), cordoned=())
    assert fences(found) == [Fence("departures-0", False)]


def test_a_pod_whose_deletion_is_decided_hands_over_too() -> None:
    doomed = pod(0, "master", disrupted=True)
    found = steps(doomed, pod(1, "standby"), pod(2, "standby"), cordoned=())
    assert fences(found) == [Fence("departures-0", True)]


def test_what_a_person_fenced_stays_fenced_and_is_no_successor() -> None:
    goal = replace(GOAL, fenced=frozenset({"departures-1"}))
    pods = (pod(0, "master"), pod(1, "fenced"))
    observed = Observed(children(desired(3)), pods, cordoned=frozenset({"west"}))
    assert fences(plan(observed, goal)) == []


def test_a_paused_broker_is_left_as_it_is() -> None:
    observed = Observed({}, (pod(0, "master"), pod(1, "standby")), cordoned=frozenset({"west"}))
    assert plan(observed, replace(GOAL, paused=True)) == ()


def test_what_is_kept_of_a_pod_tells_its_node_and_its_end() -> None:
    manifest = {
        "kind": "Pod",
        "metadata": {"name": "departures-0", "uid": "u"},
        "spec": {"nodeName": "west", "containers": [{"name": "broker"}]},
        "status": {"conditions": [{"type": "DisruptionTarget", "status": "True"}]},
    }
    kept = trimmed(manifest)
    assert kept["spec"] == {"nodeName": "west"}
    assert pod_of(kept) == pod_of(manifest)
    assert (pod_of(kept).node, pod_of(kept).disrupted) == ("west", True)


def test_conditions_and_events_say_why_nobody_leads_and_why_the_master_changed() -> None:
    pods = (pod(0, "fenced"), pod(1, "standby", able=False), pod(2, "standby", able=False))
    observed = Observed(CHILDREN, pods, cordoned=frozenset({"west"}))
    found = plan(observed, GOAL)
    condition = master_elected.condition(Facts(observed, GOAL, found))
    assert (condition.status, condition.reason) == ("False", "HandingOver")
    assert "fenced until then: departures-0" in condition.message
    (event,) = events_of_steps(found)
    assert (event.type, event.reason) == ("Normal", "HandingOver")
    after = replace(observed, pods=(pods[0], pod(1, "master"), pods[2]))
    failover = last_failover(Facts(after, GOAL), {"master": "departures-0"}, "2027-03-01T12:00:00Z")
    assert failover is not None
    assert failover.cause == "departures-0 handed over: it must leave its node"


def test_a_hand_over_that_nobody_takes_is_given_up_and_tried_again_later() -> None:
    handovers = Handovers()
    leading = Observed(pods=(pod(0, "master"), pod(1, "standby")))
    between = Observed(pods=(pod(0, "fenced"), pod(1, "standby")))
    assert not handovers.gave_up(KEY, leading, 0)
    assert not handovers.gave_up(KEY, between, TAKE_OVER_SECONDS_MAX - 1)
    assert handovers.gave_up(KEY, between, TAKE_OVER_SECONDS_MAX)
    # The old master serves again, and is not fenced again at once.
    assert handovers.gave_up(KEY, leading, AGAIN_SECONDS - 1)
    assert not handovers.gave_up(KEY, leading, AGAIN_SECONDS)
    # A master on another node that is to be emptied is another matter.
    other = Observed(pods=(pod(0, "standby"), pod(1, "master")))
    assert not handovers.gave_up(KEY, other, AGAIN_SECONDS + TAKE_OVER_SECONDS_MAX)
    handovers.forget(KEY)
    assert not handovers.gave_up(KEY, leading, AGAIN_SECONDS + TAKE_OVER_SECONDS_MAX)


WEST = frozenset({"west"})
LEADING = Observed(pods=(pod(0, "master"), pod(1, "standby")), cordoned=WEST)
BETWEEN = replace(LEADING, pods=(pod(0, "fenced"), pod(1, "standby")))
TAKEN_OVER = replace(LEADING, pods=(pod(0, "standby"), pod(1, "master")))


@pytest.mark.parametrize("led_by", [LEADING, TAKEN_OVER])
def test_a_hand_over_does_not_count_when_its_node_is_cordoned_again(led_by: Observed) -> None:
    handovers = Handovers()
    assert not handovers.gave_up(KEY, LEADING, 0)
    handovers.rest(KEY, TAKEN_OVER)
    handovers.rest(KEY, replace(led_by, cordoned=frozenset()))
    # The same pod leads again, on a node that is to be emptied once more: it has its time.
    again = TAKE_OVER_SECONDS_MAX + 5
    assert not handovers.gave_up(KEY, LEADING, again)
    assert not handovers.gave_up(KEY, BETWEEN, again + TAKE_OVER_SECONDS_MAX - 1)
    assert handovers.gave_up(KEY, BETWEEN, again + TAKE_OVER_SECONDS_MAX)


@pytest.mark.parametrize(
    "moment",
    [
        replace(LEADING, pods=(pod(0, "fenced"), pod(1, "recovering"))),
        replace(LEADING, pods=(pod(0, "fenced"), pod(1, "", ready=False, report=None))),
        replace(LEADING, pods=(pod(0, "master"), pod(1, "standby", able=False))),
    ],
)
def test_a_standby_that_fails_at_the_journal_is_not_let_try_again_at_once(
    moment: Observed,
) -> None:
    handovers = Handovers()
    assert not handovers.gave_up(KEY, LEADING, 0)
    handovers.rest(KEY, moment)
    assert handovers.gave_up(KEY, LEADING, TAKE_OVER_SECONDS_MAX)
    handovers.rest(KEY, moment)
    assert handovers.gave_up(KEY, LEADING, AGAIN_SECONDS - 1)


@pytest.mark.parametrize(
    ("leading", "said"),
    [
        # The pods of two nodes lead by turns, and each is let try once.
        ((0, 1, 0, 1, 0, 1), [False, False, True, True, True, True]),
        ((0, 0, 0, 0, 0, 0), [False, True, True, True, True, True]),
    ],
)
def test_who_takes_over_and_soon_fails_is_not_let_try_again_at_once(
    leading: tuple[int, ...], said: list[bool]
) -> None:
    def led_by(master: int) -> Observed:
        pods = (pod(each, "master" if each == master else "standby") for each in range(3))
        return Observed(pods=tuple(pods), cordoned=frozenset({"west", "east"}))

    handovers, found = Handovers(), []
    for turn, master in enumerate(leading):
        found.append(handovers.gave_up(KEY, led_by(master), turn * 50))
        handovers.rest(KEY, led_by(2))
    assert found == said
    assert not handovers.gave_up(KEY, led_by(0), AGAIN_SECONDS)


def test_who_was_fenced_for_a_hand_over_that_was_given_up_may_lead_again() -> None:
    pods = (pod(0, "fenced"), pod(1, "standby", able=False), pod(2, "fenced"))
    observed = Observed(CHILDREN, pods, cordoned=frozenset({"west", "north"}), gave_up=True)
    assert fences(plan(observed, GOAL)) == [
        Fence("departures-0", False),
        Fence("departures-2", False),
    ]
    served = replace(observed, pods=(pod(0, "master"), pod(1, "standby"), pod(2, "standby")))
    assert fences(plan(served, GOAL)) == []
    assert waits(plan(served, GOAL)) == ["MasterStays"]


ROLES = ("master", "standby", "recovering", "fenced", "")


@st.composite
def any_pod(draw: st.DrawFn, number: int) -> Pod:
    found = pod(number, draw(st.sampled_from(ROLES)), able=draw(st.booleans()))
    return replace(
        found,
        ready=draw(st.booleans()),
        terminating=draw(st.booleans()),
        disrupted=draw(st.booleans()),
        report=draw(st.sampled_from((found.report, None))),
        node=draw(st.sampled_from(NODES)),
    )


@given(
    pods=st.tuples(any_pod(0), any_pod(1), any_pod(2)),
    cordoned=st.frozensets(st.sampled_from(NODES)),
    gave_up=st.booleans(),
)
def test_whatever_there_is_somebody_may_serve_who_answers_and_stays(
    pods: tuple[Pod, ...], cordoned: frozenset[str], gave_up: bool
) -> None:
    found = fences(plan(Observed(CHILDREN, pods, cordoned=cordoned, gave_up=gave_up), GOAL))
    by_name = {each.name: each for each in pods}
    told = [by_name[step.pod] for step in found if step.fenced]
    if not told:
        return
    assert not gave_up
    staying = [each for each in pods if not (each.disrupted or each.node in cordoned)]
    assert all(each not in staying for each in told)
    # Who is to take over is proven able, and is not the master yet.
    assert any(each.takes_over for each in staying)
    assert not any(each.leads and not each.terminating for each in staying)


def followed(pods: tuple[Pod, ...], cordoned: tuple[str, ...]) -> Iterator[tuple[Step, ...]]:
    """Yield plan after plan, each carried out, and brokers that do as they are told."""
    for _ in range(10):
        found = steps(*pods, cordoned=cordoned)
        yield found
        fenced = {step.pod: step.fenced for step in fences(found)}
        roles = {each.name: each.role for each in pods}
        for name, is_fenced in fenced.items():
            roles[name] = "fenced" if is_fenced else "standby"
        if "master" not in roles.values():
            able = [name for name in sorted(roles, reverse=True) if roles[name] == "standby"]
            roles |= {able[0]: "master"} if able else {}
        pods = tuple(
            replace(pod(number, roles[each.name]), node=each.node)
            for number, each in enumerate(pods)
        )


@given(
    nodes=st.tuples(*[st.sampled_from(NODES)] * 3),
    cordoned=st.frozensets(st.sampled_from(NODES)),
    master=st.integers(0, 2),
)
def test_it_comes_to_rest_after_one_hand_over_at_most(
    nodes: tuple[str, ...], cordoned: frozenset[str], master: int
) -> None:
    pods = tuple(
        pod(number, "master" if number == master else "standby", node=nodes[number])
        for number in range(3)
    )
    plans = list(followed(pods, tuple(sorted(cordoned))))
    told = [step for found in plans for step in fences(found)]
    # Each pod is fenced once at most, let go once, and then nothing is to be done.
    assert len(told) == len(set(told))
    assert {step.pod for step in told if step.fenced} == {
        step.pod for step in told if not step.fenced
    }
    assert fences(plans[-1]) == []
    stays = nodes[master] in cordoned and cordoned.issuperset(nodes)
    assert waits(plans[-1]) == (["MasterStays"] if stays else [])
