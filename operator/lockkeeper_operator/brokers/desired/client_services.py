"""Services for clients: one for each listener, leading to the master, and where asked for one for
each of its pods.
"""

from collections.abc import Iterator
from urllib.parse import urlsplit

from lockkeeper_api.broker import Listener
from lockkeeper_api.cluster.exposure import ListenerService
from lockkeeper_operator.brokers.desired.metadata import master_selector, metadata, selector
from lockkeeper_operator.brokers.desired.subject import Subject
from lockkeeper_operator.kubernetes.manifests import Manifest
from lockkeeper_operator.names import SERVICE_LABEL

POD_NAME_LABEL = "statefulset.kubernetes.io/pod-name"
"""Written on pods by the StatefulSet's controller."""
EXTERNAL_DNS_ANNOTATION = "external-dns.alpha.kubernetes.io/hostname"


def build(subject: Subject) -> Iterator[Manifest]:
    """Yield the Services. They follow the label that brokers write on their own pods, so that a
    new master is found with the operator down.
    """
    for listener in subject.spec.listeners:
        name = subject.listener_service(listener.name)
        yield _service(subject, listener, name, master_selector(subject))
        if listener.service.per_pod:
            for number, pod in enumerate(subject.pods):
                yield _of_pod(subject, listener, number, pod)


def _of_pod(subject: Subject, listener: Listener, number: int, pod: str) -> Manifest:
    """Return the Service of one pod; any node port is Kubernetes' choice."""
    name = subject.pod_service(listener.name, number)
    found = _service(subject, listener, name, {**selector(subject), POD_NAME_LABEL: pod})
    found["spec"]["ports"][0].pop("nodePort", None)
    host = advertised_host(listener, number)
    if host:
        annotations = {EXTERNAL_DNS_ANNOTATION: host, **listener.service.annotations}
        found["metadata"]["annotations"] = annotations
    return found


def advertised_host(listener: Listener, number: int) -> str:
    """Return the host by which clients know a pod, empty where none is said."""
    urls = listener.advertised_urls
    return urlsplit(urls[number]).hostname or "" if number < len(urls) else ""


def _service(subject: Subject, listener: Listener, name: str, selected: dict[str, str]) -> Manifest:
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
            name,
            more_labels={SERVICE_LABEL: listener.name},
            annotations=settings.annotations,
        ),
        "spec": {
            "type": settings.type,
            "selector": selected,
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
