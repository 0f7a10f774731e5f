"""NetworkPolicy: who may connect to the pods."""

from lockkeeper_operator.brokers.desired.metadata import metadata, selector, selector_of
from lockkeeper_operator.brokers.desired.subject import Subject
from lockkeeper_operator.kubernetes.manifests import Manifest
from lockkeeper_operator.names import NAME_LABEL

NAMESPACE_NAME_LABEL = "kubernetes.io/metadata.name"
OPERATOR = "lockkeeper-operator"


def build(subject: Subject) -> Manifest | None:
    """Return the policy, or None where it is switched off; what pods connect to is left open."""
    policy = subject.spec.security.network_policy
    if not policy.enabled:
        return None
    listeners: Manifest = {
        "ports": [_port(listener.port) for listener in subject.spec.listeners],
    }
    if policy.clients:
        listeners["from"] = [*policy.clients, *_peers(subject)]
    asked = (subject.spec.admin.port, subject.spec.admin.tls_port)
    admin = {"ports": [_port(number) for number in asked], "from": _askers(subject)}
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": metadata(subject, subject.name),
        "spec": {
            "podSelector": {"matchLabels": selector(subject)},
            "policyTypes": ["Ingress"],
            "ingress": [listeners, admin],
        },
    }


def _peers(subject: Subject) -> list[Manifest]:
    """Return the pods of the Brokers whose bridges come in."""
    dialling = {broker: None for part in subject.networks for broker in part.dialled_by}
    return [
        {
            "namespaceSelector": {"matchLabels": {NAMESPACE_NAME_LABEL: namespace}},
            "podSelector": {"matchLabels": selector_of(name)},
        }
        for namespace, name in dialling
    ]


def _port(number: int) -> Manifest:
    return {"protocol": "TCP", "port": number}


def _askers(subject: Subject) -> list[Manifest]:
    """Return who reaches the admin endpoint: the pods among themselves, the operator, monitors."""
    policy = subject.spec.security.network_policy
    operator = {
        "namespaceSelector": {
            "matchLabels": {NAMESPACE_NAME_LABEL: subject.installation.operator_namespace}
        },
        "podSelector": {"matchLabels": {NAME_LABEL: OPERATOR}},
    }
    monitors = list(policy.monitors)
    if not monitors and subject.spec.monitoring.kind in subject.installation.optional_kinds:
        monitors = [{"namespaceSelector": {}}]
    return [{"podSelector": {"matchLabels": selector(subject)}}, operator, *monitors]
