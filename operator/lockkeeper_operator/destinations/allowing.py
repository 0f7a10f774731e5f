"""Rules by which a Destination of another namespace may live on a Broker."""

from collections.abc import Mapping

from lockkeeper_api.cluster.operation import AllowedDestinations
from lockkeeper_operator.kubernetes.label_selectors import matches


def is_allowed(
    allowed: AllowedDestinations,
    broker_namespace: str,
    namespace: str,
    namespace_labels: Mapping[str, str],
) -> bool:
    """Return whether *allowed* lets Destinations of *namespace* in; the Broker's own always may.

    Raises ValueError for a selector that is none.
    """
    if namespace == broker_namespace or allowed.namespaces == "All":
        return True
    return allowed.namespaces == "Selected" and matches(allowed.selector, namespace_labels)
