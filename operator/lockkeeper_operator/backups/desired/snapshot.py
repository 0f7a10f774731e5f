"""VolumeSnapshot: a backup that the driver of the journal's volume makes."""

from datetime import datetime

from lockkeeper_api.journal_backup import SnapshotTarget
from lockkeeper_operator.backups.names import SCHEDULED_ANNOTATION
from lockkeeper_operator.backups.subject import BackupSubject, metadata
from lockkeeper_operator.kubernetes.manifests import Manifest
from lockkeeper_operator.kubernetes.times import written


def build(subject: BackupSubject, target: SnapshotTarget) -> Manifest:
    """Return the snapshot. It has no owner, so that it stays when the JournalBackup goes."""
    spec: Manifest = {"source": {"persistentVolumeClaimName": subject.journal.claim}}
    if target.class_name is not None:
        spec["volumeSnapshotClassName"] = target.class_name
    return {
        "apiVersion": "snapshot.storage.k8s.io/v1",
        "kind": "VolumeSnapshot",
        "metadata": metadata(subject, owned=False),
        "spec": spec,
    }


def build_regular(subject: BackupSubject, target: SnapshotTarget, due: datetime) -> Manifest:
    """Return the snapshot that the schedule asks for at a time; it is named by that."""
    single = build(subject, target)
    own = {
        **single["metadata"],
        "name": f"{subject.run}-{due:%Y%m%d%H%M}",
        "annotations": {SCHEDULED_ANNOTATION: written(due)},
    }
    return {**single, "metadata": own}
