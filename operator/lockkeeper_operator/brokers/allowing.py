"""Rules by which a resource of another namespace may use a Broker."""

from collections.abc import Mapping

from lockkeeper_api.cluster.operation import AllowedNamespaces
from lockkeeper_operator.kubernetes.label_selectors import matches


def is_allowed(
    allowed: AllowedNamespaces,
    broker_namespace: str,
    namespace: str,
    namespace_labels: Mapping[str, str],
) -> bool:
    """Return whether *allowed* lets resources of *namespace* in; the Broker's own always may.

    Raises ValueError for a selector that is none.
    """
    if namespace == broker_namespace or allowed.namespaces == "All":
        return True
    return allowed.namespaces == "Selected" and matches(allowed.selector, namespace_labels)
