"""Role: what pods may do: write their own labels and hold the Lease, nothing else."""

from lockkeeper_operator.brokers.desired.metadata import metadata
from lockkeeper_operator.brokers.desired.subject import Subject
from lockkeeper_operator.kubernetes.manifests import Manifest


def build(subject: Subject) -> Manifest:
    """Return the Role. It may not create the Lease: the operator does."""
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": metadata(subject, subject.name),
        "rules": [
            {
                "apiGroups": [""],
                "resources": ["pods"],
                "resourceNames": list(subject.pods),
                "verbs": ["get", "patch"],
            },
            {
                "apiGroups": ["coordination.k8s.io"],
                "resources": ["leases"],
                "resourceNames": [subject.name],
                "verbs": ["get", "update", "patch"],
            },
        ],
    }
