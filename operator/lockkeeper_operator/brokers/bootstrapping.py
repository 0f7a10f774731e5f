"""Steps that fill the journal before the first broker starts.

Only a Broker without a StatefulSet is filled; until that is done it gets none. Pure.
"""

from collections.abc import Iterator

from lockkeeper_operator.brokers.desired.target import Desired
from lockkeeper_operator.brokers.observed import Observed
from lockkeeper_operator.kubernetes.children.child_steps import stamped
from lockkeeper_operator.kubernetes.children.steps import Create, Delete, Step, Wait
from lockkeeper_operator.kubernetes.jobs import outcome_of_job, run_with
from lockkeeper_operator.kubernetes.manifests import Manifest, key_of

JOB, STATEFUL_SET, CLAIM = "Job", "StatefulSet", "PersistentVolumeClaim"
BOOTSTRAPPING, BOOTSTRAP_FAILED = "Bootstrapping", "BootstrapFailed"


def bootstrap_steps(observed: Observed, desired: Desired) -> tuple[Step, ...]:
    """Return the steps; none when the journal is filled, or nothing is to fill it."""
    if (STATEFUL_SET, desired.name) in observed.children:
        return ()
    if desired.first_journal_problem is not None:
        return (desired.first_journal_problem,)
    if desired.bootstrap is None:
        return ()
    return _job_steps(observed, desired.bootstrap)


def held_back(desired: Desired) -> frozenset[str]:
    """Return the kinds of children that are not made while the journal is being filled.

    A claim can be made of a snapshot only when it is made, so it waits until that is known.
    """
    if desired.first_journal_problem is not None:
        return frozenset({STATEFUL_SET, CLAIM})
    return frozenset({STATEFUL_SET})


def _job_steps(observed: Observed, wanted: Manifest) -> tuple[Step, ...]:
    """Return what is to be done about the Job; two are never there at a time."""
    key = key_of(wanted)
    earlier = tuple(_earlier(observed, key[1]))
    if earlier:
        return (*earlier, Wait(BOOTSTRAPPING, f"Job {earlier[0].name} must end first"))
    present = observed.children.get(key)
    if present is None:
        return (Create(stamped(wanted)), Wait(BOOTSTRAPPING, f"Job {key[1]} fills the journal"))
    run = run_with(present, outcome_of_job(present.get("status") or {}))
    if run.state == "Succeeded":
        return ()
    if run.state == "Failed":
        why = observed.bootstrap_failures.get(run.name) or run.message
        way_out = "mend spec.bootstrap, or delete the Job to try again"
        return (Wait(BOOTSTRAP_FAILED, f"Job {run.name}: {why}; {way_out}"),)
    return (Wait(BOOTSTRAPPING, f"Job {run.name} fills the journal"),)


def _earlier(observed: Observed, name: str) -> Iterator[Delete]:
    """Yield the deletion of Jobs of an earlier spec."""
    for (kind, other), child in observed.children.items():
        if kind == JOB and other != name:
            yield Delete(kind, other, child["metadata"]["uid"])
