"""ServiceAccount: who drivers are."""

from lockkeeper_operator.analyses.desired.metadata import metadata
from lockkeeper_operator.analyses.subject import AnalysisSubject
from lockkeeper_operator.kubernetes.manifests import Manifest


def build(subject: AnalysisSubject) -> Manifest:
    """Return the account; only drivers are given its token."""
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": metadata(subject, subject.account),
        "automountServiceAccountToken": False,
    }
