"""PodDisruptionBudget: how many pods may be away when nodes are drained."""

from lockkeeper_operator.brokers.desired.metadata import metadata, selector
from lockkeeper_operator.brokers.desired.subject import Subject
from lockkeeper_operator.kubernetes.manifests import Manifest


def build(subject: Subject) -> Manifest | None:
    """Return the budget, or None where it is off or there is one replica.

    A budget over one pod would keep its node from ever being drained.
    """
    spec = subject.spec
    if spec.replicas == 1 or spec.hibernated or not spec.disruption_budget.enabled:
        return None
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": metadata(subject, subject.name),
        "spec": {
            "maxUnavailable": spec.disruption_budget.max_unavailable,
            "selector": {"matchLabels": selector(subject)},
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
        },
    }
