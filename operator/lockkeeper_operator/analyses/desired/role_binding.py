"""RoleBinding: the Role for the drivers' account."""

from lockkeeper_operator.analyses.desired.metadata import metadata
from lockkeeper_operator.analyses.subject import AnalysisSubject
from lockkeeper_operator.kubernetes.manifests import Manifest


def build(subject: AnalysisSubject) -> Manifest:
    """Return the binding."""
    account = subject.account
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": metadata(subject, account),
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": account},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": subject.namespace}],
    }
