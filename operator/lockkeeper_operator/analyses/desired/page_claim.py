"""PersistentVolumeClaim: the results of a page that is served."""

from lockkeeper_api.units import format_size
from lockkeeper_operator.analyses.desired.metadata import metadata
from lockkeeper_operator.analyses.subject import AnalysisSubject
from lockkeeper_operator.kubernetes.manifests import Manifest


def build(subject: AnalysisSubject) -> Manifest | None:
    """Return the claim, or None where results go elsewhere."""
    served = subject.served
    if served is None:
        return None
    spec: Manifest = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": format_size(served.size)}},
    }
    if served.class_name is not None:
        spec["storageClassName"] = served.class_name
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": metadata(subject, subject.page),
        "spec": spec,
    }
