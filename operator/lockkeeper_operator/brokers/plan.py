"""From what there is to what there is to be: the next steps.

Level-triggered: a plan is made from the present state alone, whatever woke the operator, and
after its steps a new one is made. Pure: no clock, no request.
"""

from collections.abc import Iterator
from dataclasses import replace

from lockkeeper_operator.brokers.bootstrapping import JOB, bootstrap_steps, held_back
from lockkeeper_operator.brokers.desired.target import Desired
from lockkeeper_operator.brokers.observed import Observed
from lockkeeper_operator.brokers.pods.claim_ends import claim_ends
from lockkeeper_operator.brokers.pods.draining import (
    fenced_for_drain,
    handover_for_drain,
    master_stays,
)
from lockkeeper_operator.brokers.pods.fences import fence_steps
from lockkeeper_operator.brokers.pods.rollout import pod_steps
from lockkeeper_operator.brokers.pods.scale_in import fenced, handover, held
from lockkeeper_operator.brokers.steps import Step
from lockkeeper_operator.kubernetes.children.child_steps import Children, child_steps
from lockkeeper_operator.kubernetes.children.ownership import Owner
from lockkeeper_operator.kubernetes.children.steps import Conflict, Delete, Refused, Wait
from lockkeeper_operator.kubernetes.children.steps import Step as ChildStep

STATEFUL_SET, LEASE = "StatefulSet", "Lease"
CONTROLLER_BEHIND = "ControllerBehind"
PODS_ARE_MADE_OF = (STATEFUL_SET, "ConfigMap")
"""Children without which a pod that starts anew would be no other than before."""


def plan(observed: Observed, desired: Desired) -> tuple[Step, ...]:
    """Return the next steps, in order; none when all is done, or while the Broker is paused.

    Pods are touched only when every child is as it is to be, or stuck and not what pods are made
    of, and the StatefulSet's controller knows the present template: a pod that is deleted earlier
    would come back unchanged.
    """
    if desired.paused:
        return ()
    filling = bootstrap_steps(observed, desired)
    if filling:
        later = held_back(desired)
        without = tuple(each for each in desired.children if each["kind"] not in later)
        return (*_child_steps(observed, replace(desired, children=without)), *filling)
    ending = claim_ends(observed, desired)
    if ending is not None:
        as_it_was = replace(desired, children=held(desired, observed))
        return (
            *fence_steps(observed.pods, desired.fenced),
            *_child_steps(observed, as_it_was),
            ending,
        )
    kept_out = fenced(observed, desired) | fenced_for_drain(observed, desired)
    fences = fence_steps(observed.pods, desired.fenced | kept_out)
    waiting = handover(observed, desired)
    if waiting is not None:
        as_it_was = replace(desired, children=held(desired, observed))
        return (*fences, *_child_steps(observed, as_it_was), waiting)
    draining = handover_for_drain(observed, desired)
    if draining is not None:
        return (*fences, *_child_steps(observed, desired), draining)
    stays = master_stays(observed, desired)
    return (*fences, *_other_steps(observed, desired), *((stays,) if stays else ()))


def _other_steps(observed: Observed, desired: Desired) -> tuple[Step, ...]:
    """Return the next steps about children, then those about pods."""
    steps = tuple(_child_steps(observed, desired))
    stuck = [step for step in steps if isinstance(step, Conflict | Refused)]
    if len(stuck) < len(steps) or any(step.kind in PODS_ARE_MADE_OF for step in stuck):
        return steps
    if _controller_is_behind(observed, desired):
        return (
            *steps,
            Wait(CONTROLLER_BEHIND, "the StatefulSet controller has not seen the change yet"),
        )
    return (*steps, *pod_steps(observed.pods, desired))


def _child_steps(observed: Observed, desired: Desired) -> Iterator[ChildStep]:
    """Yield the steps about children."""
    owner = Owner(desired.name, desired.uid)
    present = {key: child for key, child in observed.children.items() if key[0] != JOB}
    there = Children(present, observed.stuck, observed.tolerated, observed.answers)
    for step in child_steps(owner, desired.children, there):
        if not (isinstance(step, Delete) and step.kind == LEASE and _is_held(observed, desired)):
            yield step


def _is_held(observed: Observed, desired: Desired) -> bool:
    """Return whether a Lease that is not wanted any more may be held: a master without it stops."""
    return any(pod.revision != desired.revision for pod in observed.pods)


def _controller_is_behind(observed: Observed, desired: Desired) -> bool:
    present = observed.children.get((STATEFUL_SET, desired.name))
    if present is None:
        return False
    generation = present["metadata"].get("generation", 0)
    return bool(present.get("status", {}).get("observedGeneration", 0) < generation)
