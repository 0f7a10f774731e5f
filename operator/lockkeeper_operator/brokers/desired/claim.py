"""PersistentVolumeClaim: the journal that all replicas share."""

from lockkeeper_api.units import format_size
from lockkeeper_operator.brokers.desired.metadata import metadata
from lockkeeper_operator.brokers.desired.subject import Subject
from lockkeeper_operator.kubernetes.manifests import Manifest


def build(subject: Subject) -> Manifest | None:
    """Return the claim, or None where there is one to use.

    One that is to be kept has no owner, so that it stays when the Broker goes.
    """
    storage = subject.spec.storage
    if storage.existing_claim is not None:
        return None
    spec: Manifest = {
        "accessModes": access_modes(subject),
        "resources": {"requests": {"storage": format_size(storage.size)}},
    }
    if storage.class_name is not None:
        spec["storageClassName"] = storage.class_name
    if subject.first_journal is not None and subject.first_journal.snapshot:
        spec["dataSource"] = {
            "apiGroup": "snapshot.storage.k8s.io",
            "kind": "VolumeSnapshot",
            "name": subject.first_journal.snapshot,
        }
    owned = storage.deletion_policy == "Delete"
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": metadata(subject, subject.claim, owned=owned, more_labels=storage.labels),
        "spec": spec,
    }


def access_modes(subject: Subject) -> list[str]:
    """Return how the volume is mounted."""
    storage = subject.spec.storage
    if storage.access_modes is not None:
        return list(storage.access_modes)
    return ["ReadWriteOnce" if subject.spec.replicas == 1 else "ReadWriteMany"]
