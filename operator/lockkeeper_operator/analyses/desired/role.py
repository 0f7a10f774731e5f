"""Role: what drivers may do: make and watch executors, and tell how far they are."""

from lockkeeper_operator.analyses.desired.metadata import metadata
from lockkeeper_operator.analyses.subject import AnalysisSubject
from lockkeeper_operator.kubernetes.manifests import Manifest

PROGRESS = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "patch"]}]
"""All that a driver without executors needs."""
SPARK = [
    {
        "apiGroups": [""],
        "resources": ["pods"],
        "verbs": [
            "get",
            "list",
            "watch",
            "create",
            "patch",
            "update",
            "delete",
            "deletecollection",
        ],
    },
    {
        "apiGroups": [""],
        "resources": ["configmaps"],
        "verbs": ["get", "list", "create", "update", "patch", "delete", "deletecollection"],
    },
    {"apiGroups": [""], "resources": ["services"], "verbs": ["get", "list"]},
]


def build(subject: AnalysisSubject) -> Manifest:
    """Return the Role. Executors' names are Spark's, so that it is about all pods there."""
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": metadata(subject, subject.account),
        "rules": SPARK if subject.has_executors else PROGRESS,
    }
