"""Lease: the lock that the master holds besides the file lock."""

from lockkeeper_operator.brokers.desired.metadata import metadata
from lockkeeper_operator.brokers.desired.subject import Subject
from lockkeeper_operator.kubernetes.manifests import Manifest


def build(subject: Subject) -> Manifest | None:
    """Return the Lease, or None where it is switched off.

    Only its metadata: what is in it is for the brokers to write.
    """
    if not subject.spec.locker.lease.enabled:
        return None
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": metadata(subject, subject.name),
    }
