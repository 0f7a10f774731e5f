"""From what there is of a backup to the next steps.

A single backup is made once: the status remembers it, and it is not made again, also when somebody
removed its Job to stop it. Copies of a schedule are made by the cluster, from what is kept up to
date here; snapshots of a schedule one by one.
"""

from collections.abc import Mapping

from lockkeeper_operator.backups.desired.run import run
from lockkeeper_operator.backups.misplaced import anew_steps
from lockkeeper_operator.backups.observed import ObservedBackup, is_hidden, was_begun
from lockkeeper_operator.backups.snapshots import due_steps, surplus
from lockkeeper_operator.backups.subject import BackupSubject
from lockkeeper_operator.brokers.journal import CLAIM_EXCLUSIVE
from lockkeeper_operator.kubernetes.children.child_steps import Children, child_steps, stamped
from lockkeeper_operator.kubernetes.children.ownership import stranger
from lockkeeper_operator.kubernetes.children.steps import Conflict, Create, Step, Wait
from lockkeeper_operator.kubernetes.manifests import Key, Manifest, key_of


def backup_plan(observed: ObservedBackup, subject: BackupSubject) -> tuple[Step, ...]:
    """Return what is to be done about a backup. Jobs of an earlier spec go."""
    problem = _problem(observed, subject)
    schedule, target = subject.spec.schedule, subject.spec.target.snapshot
    if schedule is not None and problem is not None:
        return (problem,)
    if target is None:
        if problem is not None:
            return _once(observed, subject, problem)
        steps = (
            _once(observed, subject, None)
            if schedule is None
            else _steps(observed.children, subject, run(subject))
        )
        return (*steps, *anew_steps(observed, subject))
    kept = tuple(surplus(observed, subject))
    if schedule is None:
        return (*_once(observed, subject, problem), *kept)
    due = due_steps(observed, subject, schedule, target)
    return (*_steps(observed.children, subject), *due, *kept)


def _once(
    observed: ObservedBackup, subject: BackupSubject, problem: Wait | None
) -> tuple[Step, ...]:
    """Return the steps about a single backup."""
    manifest = run(subject)
    key = key_of(manifest)
    own = {
        (kind, name): child
        for (kind, name), child in observed.children.items()
        if kind == key[0] and subject.is_run(name)
    }
    others = {name: child for name, child in observed.children.items() if name not in own}
    steps = _steps(others, subject)
    owner = stranger(own[key], subject.owner) if key in own else ""
    if owner:
        return (*steps, Conflict(*key, owner))
    # What is in a Job cannot be changed.
    if own:
        return steps
    if was_begun(observed.status, subject):
        return (*steps, problem) if problem and is_hidden(observed, subject) else steps
    return (*steps, problem or Create(stamped(manifest)))


def _steps(
    children: Mapping[Key, Manifest], subject: BackupSubject, *wanted: Manifest
) -> tuple[Step, ...]:
    return tuple(child_steps(subject.owner, wanted, Children(children)))


def _problem(observed: ObservedBackup, subject: BackupSubject) -> Wait | None:
    """Return why no backup can be begun now, None if nothing speaks against it."""
    journal, claim = subject.journal, subject.spec.target.claim
    wants_snapshot = subject.spec.target.snapshot is not None
    if wants_snapshot and not observed.knows_snapshots:
        why = "target.snapshot: the cluster does not know VolumeSnapshots; use claim or url"
        return Wait("SnapshotsUnknown", why)
    if journal.problem and not (wants_snapshot and journal.problem == CLAIM_EXCLUSIVE):
        return Wait(journal.problem, journal.why)
    if claim is not None and claim.name == journal.claim:
        why = f"target.claim: {claim.name} holds the journal itself; name another claim"
        return Wait("TargetIsJournal", why)
    if subject.spec.suspend and subject.spec.schedule is None:
        return Wait("Suspended", "spec.suspend is set")
    return None
