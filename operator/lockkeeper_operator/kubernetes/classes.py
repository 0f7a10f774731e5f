"""Classes: the resources that are this operator's, where several share a cluster.

A resource says by a label of which class it is, as an Ingress does by its ingressClassName. An
operator with a class looks after those of it alone, one without after those that name none. It is
a label, not a field, so that the API server can leave out what is another's.
"""

from lockkeeper_api.pod_names import CLASS_LABEL
from lockkeeper_operator.kubernetes.manifests import Manifest


def class_selector(class_name: str) -> str:
    """Return the label selector of a class; empty for none, whose resources `is_of` tells."""
    return f"{CLASS_LABEL}={class_name}" if class_name else ""


def is_of(class_name: str, resource: Manifest) -> bool:
    """Return whether a resource is of a class, or, where that is empty, of none."""
    said: str | None = resource["metadata"].get("labels", {}).get(CLASS_LABEL)
    return said == (class_name or None)
