"""Service without an address of its own: gives each pod a name in DNS."""

from lockkeeper_operator.brokers.desired.metadata import metadata, selector
from lockkeeper_operator.brokers.desired.subject import Subject
from lockkeeper_operator.kubernetes.manifests import Manifest
from lockkeeper_operator.names import ADMIN_PORT_NAME, ADMIN_TLS_PORT_NAME, SERVICE_LABEL


def build(subject: Subject) -> Manifest:
    """Return the Service. Pods have their names from the start, whatever their state."""
    admin = subject.spec.admin
    named = [
        *((listener.name, listener.port) for listener in subject.spec.listeners),
        (ADMIN_PORT_NAME, admin.port),
        (ADMIN_TLS_PORT_NAME, admin.tls_port),
    ]
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata(
            subject, subject.replicas_service, more_labels={SERVICE_LABEL: "replicas"}
        ),
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "selector": selector(subject),
            "ports": [{"name": name, "port": port, "targetPort": port} for name, port in named],
        },
    }
