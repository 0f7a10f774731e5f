"""Services for clients: one for each listener, leading to the master alone."""

from collections.abc import Iterator

from lockkeeper_api.broker import Listener
from lockkeeper_api.cluster.exposure import ListenerService
from lockkeeper_operator.brokers.desired.metadata import master_selector, metadata
from lockkeeper_operator.brokers.desired.subject import Subject
from lockkeeper_operator.kubernetes.manifests import Manifest
from lockkeeper_operator.names import SERVICE_LABEL


def build(subject: Subject) -> Iterator[Manifest]:
    """Yield the Services. They follow the label that brokers write on their own pods, so that a
    new master is found with the operator down.
    """
    for listener in subject.spec.listeners:
        yield _service(subject, listener)


def _service(subject: Subject, listener: Listener) -> Manifest:
    settings = listener.service
    port: Manifest = {
        "name": listener.name,
        "port": listener.port,
        "targetPort": listener.port,
        "protocol": "TCP",
    }
    if settings.node_port is not None:
        port["nodePort"] = settings.node_port
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata(
            subject,
            subject.listener_service(listener.name),
            more_labels={SERVICE_LABEL: listener.name},
            annotations=settings.annotations,
        ),
        "spec": {
            "type": settings.type,
            "selector": master_selector(subject),
            "ports": [port],
            **_reach(settings),
        },
    }


def _reach(settings: ListenerService) -> Manifest:
    """Return from where, and at which addresses, a Service is reached, as far as that is said."""
    said = {
        "loadBalancerClass": settings.load_balancer_class,
        "loadBalancerSourceRanges": list(settings.source_ranges),
        "externalTrafficPolicy": settings.external_traffic_policy,
        "ipFamilyPolicy": settings.ip_family_policy,
        "ipFamilies": list(settings.ip_families),
    }
    return {name: value for name, value in said.items() if value}
