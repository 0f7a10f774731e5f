"""VolumeSnapshot: a backup that the driver of the journal's volume makes."""

from lockkeeper_api.journal_backup import SnapshotTarget
from lockkeeper_operator.backups.subject import BackupSubject, metadata
from lockkeeper_operator.kubernetes.manifests import Manifest


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
