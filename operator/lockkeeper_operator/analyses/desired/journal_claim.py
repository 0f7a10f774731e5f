"""PersistentVolumeClaim: a copy of the journal, made of a snapshot."""

from lockkeeper_api.units import format_size
from lockkeeper_operator.analyses.desired.metadata import metadata
from lockkeeper_operator.analyses.subject import AnalysisSubject
from lockkeeper_operator.kubernetes.manifests import Manifest


def build(subject: AnalysisSubject) -> Manifest | None:
    """Return the claim, or None where the journal is read where it is."""
    snapshot = subject.spec.source.snapshot
    if snapshot is None:
        return None
    spec: Manifest = {
        "accessModes": ["ReadWriteOnce"],
        "dataSource": {
            "apiGroup": "snapshot.storage.k8s.io",
            "kind": "VolumeSnapshot",
            "name": snapshot.name,
        },
        "resources": {"requests": {"storage": format_size(snapshot.size)}},
    }
    if snapshot.class_name is not None:
        spec["storageClassName"] = snapshot.class_name
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": metadata(subject, subject.journal.claim),
        "spec": spec,
    }
