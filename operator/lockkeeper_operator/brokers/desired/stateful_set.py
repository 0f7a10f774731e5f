"""StatefulSet: keeps the pods there; when they start anew is for the plan to say."""

from lockkeeper_operator.brokers.desired.metadata import metadata, selector
from lockkeeper_operator.brokers.desired.pod_template import pod_template
from lockkeeper_operator.brokers.desired.subject import Subject
from lockkeeper_operator.kubernetes.manifests import Manifest

REVISIONS_KEPT = 3


def build(subject: Subject) -> Manifest:
    """Return the StatefulSet; none of its pods is replaced before the plan deletes it."""
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": metadata(subject, subject.name),
        "spec": {
            "replicas": 0 if subject.spec.hibernated else subject.spec.replicas,
            "serviceName": subject.replicas_service,
            "podManagementPolicy": "Parallel",
            "updateStrategy": {"type": "OnDelete"},
            "revisionHistoryLimit": REVISIONS_KEPT,
            "selector": {"matchLabels": selector(subject)},
            "template": pod_template(subject),
        },
    }
