"""Service: leads browsers to the page."""

from lockkeeper_operator.analyses.desired.metadata import metadata, selector
from lockkeeper_operator.analyses.names import PAGE
from lockkeeper_operator.analyses.subject import AnalysisSubject
from lockkeeper_operator.kubernetes.manifests import Manifest


def build(subject: AnalysisSubject) -> Manifest | None:
    """Return the Service, or None where results go elsewhere."""
    served = subject.served
    if served is None:
        return None
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata(subject, subject.page),
        "spec": {
            "selector": selector(subject, PAGE),
            "ports": [{"name": "http", "port": served.port, "targetPort": "page"}],
        },
    }
