"""Routes of listeners: a TLSRoute or an Ingress for each host name, with TLS passed through."""

from collections.abc import Iterator

from lockkeeper_api.broker import Listener
from lockkeeper_api.cluster.exposure import Gateway, Route
from lockkeeper_operator.brokers.desired.client_services import advertised_host
from lockkeeper_operator.brokers.desired.metadata import metadata
from lockkeeper_operator.brokers.desired.subject import Subject
from lockkeeper_operator.kubernetes.manifests import Manifest

TLS_ROUTE = "TLSRoute"
PASS_THROUGH = {
    "nginx.ingress.kubernetes.io/ssl-passthrough": "true",
    "haproxy.org/ssl-passthrough": "true",
    "ingress.kubernetes.io/ssl-passthrough": "true",
}
"""Every controller has a name of its own for it, and passes over those of others."""


def build(subject: Subject) -> Iterator[Manifest]:
    """Yield the routes, each with the name of the Service that it leads to.

    TLSRoutes are left out where the cluster does not know them.
    """
    for listener in subject.spec.listeners:
        route = listener.route
        if route is None:
            continue
        for service, host in _ways(subject, listener, route):
            if route.ingress_class_name is not None:
                yield _ingress(subject, listener, route, service, host)
            elif route.gateway is not None and not _is_unknown(subject, TLS_ROUTE):
                yield _tls_route(subject, listener, route, route.gateway, service, host)


def missing_kinds(subject: Subject) -> tuple[str, ...]:
    """Return the kinds that the spec asks for and the cluster does not know."""
    asked = any(
        listener.route is not None and listener.route.gateway is not None
        for listener in subject.spec.listeners
    )
    return (TLS_ROUTE,) if asked and _is_unknown(subject, TLS_ROUTE) else ()


def _is_unknown(subject: Subject, kind: str) -> bool:
    return kind not in subject.installation.optional_kinds


def _ways(subject: Subject, listener: Listener, route: Route) -> Iterator[tuple[str, str]]:
    """Yield the Services with the hosts that lead to them: the master's, then those of pods."""
    yield subject.listener_service(listener.name), route.host
    if listener.service.per_pod:
        for number in range(len(subject.pods)):
            host = advertised_host(listener, number)
            if host:
                yield subject.pod_service(listener.name, number), host


def _tls_route(
    subject: Subject, listener: Listener, route: Route, gateway: Gateway, service: str, host: str
) -> Manifest:
    parent = {"name": gateway.name}
    if gateway.namespace is not None:
        parent["namespace"] = gateway.namespace
    if gateway.section_name is not None:
        parent["sectionName"] = gateway.section_name
    return {
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": TLS_ROUTE,
        "metadata": metadata(subject, service, annotations=route.annotations),
        "spec": {
            "parentRefs": [parent],
            "hostnames": [host],
            "rules": [{"backendRefs": [{"name": service, "port": listener.port}]}],
        },
    }


def _ingress(
    subject: Subject, listener: Listener, route: Route, service: str, host: str
) -> Manifest:
    backend = {"service": {"name": service, "port": {"number": listener.port}}}
    path = {"path": "/", "pathType": "ImplementationSpecific", "backend": backend}
    annotations = {**PASS_THROUGH, **route.annotations}
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "Ingress",
        "metadata": metadata(subject, service, annotations=annotations),
        "spec": {
            "ingressClassName": route.ingress_class_name,
            "rules": [{"host": host, "http": {"paths": [path]}}],
            "tls": [{"hosts": [host]}],
        },
    }
