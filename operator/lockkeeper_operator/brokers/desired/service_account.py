"""ServiceAccount: who the pods are."""

from lockkeeper_operator.brokers.desired.metadata import metadata
from lockkeeper_operator.brokers.desired.subject import Subject
from lockkeeper_operator.kubernetes.manifests import Manifest


def build(subject: Subject) -> Manifest:
    """Return the account; only the broker's container is given its token."""
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": metadata(subject, subject.name),
        "automountServiceAccountToken": False,
    }
