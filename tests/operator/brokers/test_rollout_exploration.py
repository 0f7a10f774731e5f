"""Every state that a roll-out can reach: crashes after each step, stale views, lost events.

A world of pods is explored breadth first. At any time pods may be made, become ready, take the
lock, crash; the operator may look, may carry out what it planned from an older look, or may be
killed and forget it.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest

from lockkeeper_operator.brokers.desired.target import Desired
from lockkeeper_operator.brokers.observed import Pod
from lockkeeper_operator.brokers.pods.rollout import pod_steps
from lockkeeper_operator.brokers.steps import DeletePod, SwitchOver
from lockkeeper_operator.names import MASTER, STANDBY
from lockkeeper_operator.polling.report import Report

OLD, NEW = "old", "new"
CRASHES_MAX = 1


@dataclass(frozen=True)
class Slot:
    """One number of the StatefulSet; a pod in it has the life *life*, or is absent."""

    life: int = 0
    revision: str = OLD
    state: str = "ready"
    role: str = STANDBY


@dataclass(frozen=True)
class World:
    slots: tuple[Slot, ...]
    planned: DeletePod | SwitchOver | None = None
    crashes: int = 0


def view(world: World) -> list[Pod]:
    return [
        Pod(
            name=f"b-{number}",
            uid=str(slot.life),
            revision=slot.revision,
            role=slot.role,
            ready=slot.state == "ready",
            report=Report(slot.role, takes_over=slot.role == STANDBY),
        )
        for number, slot in enumerate(world.slots)
        if slot.state != "absent"
    ]


def with_slot(world: World, number: int, slot: Slot) -> World:
    slots = list(world.slots)
    slots[number] = slot
    return replace(world, slots=tuple(slots))


def world_moves(world: World) -> Iterator[World]:
    """Yield what may happen by itself."""
    led = any(slot.role == MASTER for slot in world.slots if slot.state != "absent")
    for number, slot in enumerate(world.slots):
        if slot.state == "absent":
            fresh = Slot(slot.life + 1, NEW, "starting")
            yield with_slot(world, number, fresh)
        elif slot.state == "starting":
            yield with_slot(world, number, replace(slot, state="ready"))
        elif slot.role == STANDBY and not led:
            yield with_slot(world, number, replace(slot, role=MASTER))
        if slot.state == "ready" and world.crashes < CRASHES_MAX:
            again = replace(slot, state="starting", role=STANDBY)
            yield replace(with_slot(world, number, again), crashes=world.crashes + 1)


def operator_moves(world: World, goal: Desired) -> Iterator[World]:
    """Yield what the operator may do: look and plan, carry out, or forget."""
    if world.planned is None:
        for step in pod_steps(view(world), goal):
            if isinstance(step, DeletePod | SwitchOver):
                check_plan(world, step)
                yield replace(world, planned=step)
        return
    yield replace(world, planned=None)
    name = world.planned.master if isinstance(world.planned, SwitchOver) else world.planned.name
    number = int(name.rpartition("-")[2])
    slot = world.slots[number]
    done = replace(world, planned=None)
    if slot.state != "absent" and str(slot.life) == world.planned.uid:
        check_deletion(world, number)
        done = with_slot(done, number, replace(slot, state="absent", role=STANDBY))
    yield done


def check_plan(world: World, step: DeletePod | SwitchOver) -> None:
    """A step is planned only when all pods work, and the master's only with a successor."""
    assert all(slot.state == "ready" for slot in world.slots)
    if isinstance(step, SwitchOver):
        successor = world.slots[int(step.successor.rpartition("-")[2])]
        assert (successor.revision, successor.role) == (NEW, STANDBY)
    elif len(world.slots) > 1:
        assert world.slots[int(step.name.rpartition("-")[2])].role == STANDBY


def check_deletion(world: World, number: int) -> None:
    """Whatever the operator knew: it replaces old pods only, and leaves a working one."""
    assert world.slots[number].revision == OLD
    others = [slot for index, slot in enumerate(world.slots) if index != number]
    away = sum(slot.state != "ready" for slot in others)
    assert away <= world.crashes


def is_done(world: World) -> bool:
    roles = sorted(slot.role for slot in world.slots)
    settled = all(slot.revision == NEW and slot.state == "ready" for slot in world.slots)
    return settled and roles.count(MASTER) == 1


@pytest.mark.parametrize("replicas", [1, 2, 3])
def test_from_every_state_a_roll_out_ends_and_never_takes_the_last_pod(replicas: int) -> None:
    goal = Desired("b", "uid", pods=tuple(f"b-{n}" for n in range(replicas)), revision=NEW)
    start = World((Slot(role=MASTER), *(Slot() for _ in range(replicas - 1))))
    before: dict[World, set[World]] = defaultdict(set)
    seen, pending = {start}, [start]
    while pending:
        world = pending.pop()
        for following in (*world_moves(world), *operator_moves(world, goal)):
            before[following].add(world)
            if following not in seen:
                seen.add(following)
                pending.append(following)
    done = [world for world in seen if is_done(world)]
    assert done
    ends, pending = set(done), done
    while pending:
        for earlier in before[pending.pop()] - ends:
            ends.add(earlier)
            pending.append(earlier)
    assert ends == seen
    for world in done:
        assert pod_steps(view(world), goal) == ()
