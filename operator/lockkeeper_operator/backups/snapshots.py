"""Regular VolumeSnapshots: the next one when it is due, and those that need not be kept."""

from collections.abc import Iterator, Mapping
from datetime import datetime

from lockkeeper_api.journal_backup import BackupSchedule, SnapshotTarget
from lockkeeper_operator.backups.desired.snapshot import build_regular
from lockkeeper_operator.backups.observed import ObservedBackup
from lockkeeper_operator.backups.schedule import LATE, latest_due
from lockkeeper_operator.backups.subject import BackupSubject
from lockkeeper_operator.kubernetes.children.child_steps import stamped
from lockkeeper_operator.kubernetes.children.ownership import stranger
from lockkeeper_operator.kubernetes.children.steps import Create, Delete, Step, Wait
from lockkeeper_operator.kubernetes.jobs import Run
from lockkeeper_operator.kubernetes.manifests import Key, Manifest, key_of
from lockkeeper_operator.kubernetes.times import parsed

KIND = "VolumeSnapshot"
INVALID_SCHEDULE = "InvalidSchedule"


def without_others(children: Mapping[Key, Manifest], claim: str) -> dict[Key, Manifest]:
    """Return *children* without snapshots of another claim than that of the Broker's journal.

    Snapshots stay when their JournalBackup goes: one of the same name may have been of another
    Broker, whose snapshots count for nothing here, and are not deleted.
    """
    return {
        key: child
        for key, child in children.items()
        if key[0] != KIND or _source_of(child) == claim
    }


def _source_of(snapshot: Manifest) -> str:
    source = snapshot.get("spec", {}).get("source", {})
    return str(source.get("persistentVolumeClaimName", ""))


def due_steps(
    observed: ObservedBackup,
    subject: BackupSubject,
    schedule: BackupSchedule,
    target: SnapshotTarget,
) -> tuple[Step, ...]:
    """Return what makes the snapshot that is due now, none while another one is made."""
    since = parsed(str(observed.status.get("lastScheduleTime") or subject.created))
    try:
        due = latest_due(schedule, since, observed.now)
    except ValueError as error:
        return (Wait(INVALID_SCHEDULE, str(error)),)
    made = [run for run in observed.runs if run.kind == KIND]
    if due is None or subject.spec.suspend or any(_is_made(run, observed.now) for run in made):
        return ()
    manifest = stamped(build_regular(subject, target, due))
    # It may be there, and its status not written: an operator was killed in between.
    return () if key_of(manifest) in observed.children else (Create(manifest),)


def surplus(observed: ObservedBackup, subject: BackupSubject) -> Iterator[Delete]:
    """Yield the deletion of what is older than the snapshots that are kept.

    Only those that can be used, and stay, are counted: one that fails costs none of them.
    """
    made = [run for run in observed.runs if run.kind == KIND]
    usable = [run for run in made if run.state == "Succeeded"][: subject.spec.keep]
    if len(usable) < subject.spec.keep:
        return
    for run in made[made.index(usable[-1]) + 1 :]:
        child = observed.children[KIND, run.name]
        if not stranger(child, subject.owner):
            yield Delete(KIND, run.name, run.uid)


def _is_made(run: Run, now: datetime) -> bool:
    """Return whether a snapshot is being made; one that takes too long is waited for no more."""
    return not run.ended and now - parsed(run.created) < LATE
