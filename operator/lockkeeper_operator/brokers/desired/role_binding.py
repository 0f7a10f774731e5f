"""RoleBinding: the Role for the pods' account."""

from lockkeeper_operator.brokers.desired.metadata import metadata
from lockkeeper_operator.brokers.desired.subject import Subject
from lockkeeper_operator.kubernetes.manifests import Manifest


def build(subject: Subject) -> Manifest:
    """Return the binding."""
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": metadata(subject, subject.name),
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "Role",
            "name": subject.name,
        },
        "subjects": [
            {"kind": "ServiceAccount", "name": subject.name, "namespace": subject.namespace}
        ],
    }
