from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, get_args

import pytest

from lockkeeper_operator.destinations.observed import BrokerState, DeletionPolicy, DestinationState
from lockkeeper_operator.destinations.plan import Action, destination_plan

POLICIES = get_args(DeletionPolicy)


def steps(**changes: Any) -> list[tuple[str, str]]:
    state = DestinationState("ORDERS", **changes)
    return [(step.action.value, step.reason) for step in destination_plan(state)]


THERE: dict[str, Any] = {"exists": True, "in_sync": True}
ENDING: dict[str, Any] = {**THERE, "deleting": True, "finalizer": True}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, [("Declare", "DestinationMissing")]),
        ({"exists": True}, [("SetPolicy", "DestinationDrift")]),
        (THERE, []),
        ({"policy": "Delete"}, [("AddFinalizer", "Needed")]),
        ({"policy": "Delete", "finalizer": True}, [("Declare", "DestinationMissing")]),
        ({**THERE, "finalizer": True}, [("RemoveFinalizer", "NotNeeded")]),
        ({"broker": BrokerState.SILENT}, [("Wait", "BrokerUnavailable")]),
        ({"broker": BrokerState.LOST}, [("Wait", "BrokerUnavailable")]),
        ({"broker": BrokerState.GONE}, []),
        ({"accepted": False}, []),
        ({"accepted": False, "finalizer": True, "policy": "Delete"},
         [("RemoveFinalizer", "NotNeeded")]),
        ({**THERE, "purge": "ORDERS"},
         [("ClearPurge", "PurgeConfirmed"), ("Purge", "Purged")]),
        ({**THERE, "purge": "yes"}, [("ClearPurge", "PurgeUnconfirmed")]),
        ({"purge": "ORDERS"}, [("Declare", "DestinationMissing")]),
    ],
)  # fmt: skip
def test_a_destination_is_made_and_kept(
    changes: dict[str, Any], expected: list[tuple[str, str]]
) -> None:
    assert steps(**changes) == expected


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"policy": "Retain"}, [("RemoveFinalizer", "Retained")]),
        ({"policy": "Delete"}, [("Remove", "Deleted")]),
        ({"policy": "Delete", "exists": False}, [("RemoveFinalizer", "Removed")]),
        ({"policy": "DeleteIfEmpty", "empty": True}, [("RemoveIfEmpty", "Deleted")]),
        ({"policy": "DeleteIfEmpty"}, [("RemoveFinalizer", "NotEmpty")]),
        ({"policy": "Delete", "broker": BrokerState.GONE}, [("RemoveFinalizer", "BrokerGone")]),
        ({"policy": "Delete", "broker": BrokerState.SILENT}, [("Wait", "BrokerUnavailable")]),
        (
            {"policy": "Delete", "broker": BrokerState.LOST},
            [("RemoveFinalizer", "BrokerUnreachable")],
        ),
        ({"policy": "Retain", "broker": BrokerState.SILENT}, [("RemoveFinalizer", "Retained")]),
        ({"policy": "Delete", "accepted": False}, [("RemoveFinalizer", "NeverAccepted")]),
        ({"policy": "Delete", "finalizer": False}, []),
    ],
)
def test_a_deletion_does_what_the_policy_says(
    changes: dict[str, Any], expected: list[tuple[str, str]]
) -> None:
    assert steps(**{**ENDING, **changes}) == expected


def moves(state: DestinationState) -> Iterator[DestinationState]:
    """Yield what may happen by itself: to the broker, to the resource, behind everyone's back."""
    if state.broker is not BrokerState.GONE:
        for broker in BrokerState:
            yield replace(state, broker=broker)
        yield replace(state, exists=False, in_sync=False, empty=False)
        if state.exists:
            yield replace(state, empty=not state.empty)
            yield replace(state, in_sync=False)
    if not state.deleting:
        yield replace(state, deleting=True)


def carried_out(state: DestinationState, action: Action) -> DestinationState:
    """Return the state after *action*, which checks that the policy allows it."""
    there = {"exists": False, "in_sync": False, "empty": False}
    if action is Action.ADD_FINALIZER:
        return replace(state, finalizer=True)
    if action is Action.REMOVE_FINALIZER:
        return replace(state, finalizer=False)
    if action in (Action.DECLARE, Action.SET_POLICY):
        return replace(state, exists=True, in_sync=True, empty=not state.exists or state.empty)
    if action is Action.REMOVE:
        assert (state.policy, state.deleting) == ("Delete", True)
        return replace(state, **there)  # type: ignore[arg-type]
    if action is Action.REMOVE_IF_EMPTY:
        assert (state.policy, state.deleting) == ("DeleteIfEmpty", True)
        return replace(state, **there) if state.empty else state  # type: ignore[arg-type]
    assert action is Action.WAIT
    return state


def operator_moves(state: DestinationState) -> list[DestinationState]:
    """Return the state after the planned steps, or none if there are none.

    A step fails when the broker is not there; being killed before it is a move to nowhere.
    """
    return [carried_out(state, step.action) for step in destination_plan(state)]


@pytest.mark.parametrize("policy", POLICIES)
def test_from_every_state_a_deletion_ends_without_anyone_doing_anything_special(
    policy: DeletionPolicy,
) -> None:
    start = DestinationState("ORDERS", policy)
    before: dict[DestinationState, set[DestinationState]] = defaultdict(set)
    seen, pending = {start}, [start]
    while pending:
        state = pending.pop()
        for following in (*moves(state), *operator_moves(state)):
            before[following].add(state)
            if following not in seen:
                seen.add(following)
                pending.append(following)
    deleting = {state for state in seen if state.deleting}
    ends = {state for state in deleting if not state.finalizer}
    pending = list(ends)
    while pending:
        for earlier in before[pending.pop()] - ends:
            ends.add(earlier)
            pending.append(earlier)
    assert deleting <= ends
    given_up = (BrokerState.GONE, BrokerState.LOST)
    gone = [state for state in deleting if state.broker in given_up and state.finalizer]
    assert all(not operator_moves(state)[0].finalizer for state in gone)
    if policy == "Retain":
        assert not any(state.finalizer for state in seen)
