"""Steps that fill the journal before the first broker starts.

Only a Broker that never served is filled; until that is done it gets no StatefulSet, and neither
does it while something still fills that is not wanted any more. Pure.
"""

from collections.abc import Iterable, Iterator

from lockkeeper_operator.brokers.desired.target import Desired
from lockkeeper_operator.brokers.observed import Observed
from lockkeeper_operator.kubernetes.children.child_steps import stamped
from lockkeeper_operator.kubernetes.children.ownership import Owner, controller_of, stranger
from lockkeeper_operator.kubernetes.children.steps import Create, Delete, Step, Wait
from lockkeeper_operator.kubernetes.children.unwatched import ENDED_PHASES
from lockkeeper_operator.kubernetes.jobs import outcome_of_job, run_with
from lockkeeper_operator.kubernetes.manifests import Manifest, key_of

JOB, STATEFUL_SET, CLAIM = "Job", "StatefulSet", "PersistentVolumeClaim"
BOOTSTRAPPING, BOOTSTRAP_FAILED = "Bootstrapping", "BootstrapFailed"


def bootstrap_steps(observed: Observed, desired: Desired) -> tuple[Step, ...]:
    """Return the steps; none when the journal is filled, or nothing is to fill it."""
    if (STATEFUL_SET, desired.name) in observed.children:
        return ()
    others = tuple(_others(observed, desired))
    if others:
        return others
    if observed.has_served:
        # Its StatefulSet was deleted by somebody; what it began with may be gone since.
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


def filling(pods: Iterable[Manifest]) -> dict[str, str]:
    """Return which of a Broker's Jobs' *pods* go on: the uids of their Jobs, by their names."""
    return {
        pod["metadata"]["name"]: (controller_of(pod) or {}).get("uid", "")
        for pod in pods
        if pod.get("status", {}).get("phase") not in ENDED_PHASES
    }


def _job_steps(observed: Observed, wanted: Manifest) -> tuple[Step, ...]:
    """Return what is to be done about the Job."""
    key = key_of(wanted)
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


def _others(observed: Observed, desired: Desired) -> Iterator[Step]:
    """Yield the end of all that fills the journal and is not what the spec wants now.

    That is a Job of an earlier spec, or of an earlier Broker of the name, and pods that outlive
    their Job for a while: two at a time, or a broker beside one, would spoil each other's files.
    """
    wanted = "" if desired.bootstrap is None else key_of(desired.bootstrap)[1]
    owner, own = Owner(desired.name, desired.uid), ""
    for (kind, name), job in observed.children.items():
        if kind != JOB:
            continue
        another, ends = stranger(job, owner), "deletionTimestamp" in job["metadata"]
        if name == wanted and not another and not ends:
            own = job["metadata"]["uid"]
            continue
        if not another and not ends:
            yield Delete(kind, name, job["metadata"]["uid"])
        yield Wait(BOOTSTRAPPING, f"Job {name} must end first")
    for name, uid in observed.filling.items():
        if uid != own:
            yield Wait(BOOTSTRAPPING, f"pod {name} still fills the journal, and must end first")
