"""PodMonitor or ServiceMonitor: where Prometheus finds the figures."""

from lockkeeper_api.units import format_duration
from lockkeeper_operator.brokers.desired.metadata import metadata, selector
from lockkeeper_operator.brokers.desired.subject import Subject
from lockkeeper_operator.kubernetes.manifests import Manifest
from lockkeeper_operator.names import (
    ADMIN_PORT_NAME,
    ADMIN_TLS_PORT_NAME,
    AUTHORITY_FILE,
    SERVICE_LABEL,
)

METRICS_PATH = "/metrics"
_SERVES_TLS = {
    "sourceLabels": ["__meta_kubernetes_pod_annotationpresent_lockkeeper_dev_admin_tls_port"],
    "regex": "true",
}
"""Which pods do: those of earlier releases are asked without it, until they start anew."""


def build(subject: Subject) -> Manifest | None:
    """Return the monitor, or None where none is wanted or the cluster does not know the kind."""
    settings = subject.spec.monitoring
    if not settings.enabled or settings.kind not in subject.installation.optional_kinds:
        return None
    endpoints = [_encrypted(subject), _plain()]
    for endpoint in endpoints:
        _complete(endpoint, subject)
    matched = selector(subject)
    if settings.kind == "ServiceMonitor":
        spec: Manifest = {"endpoints": endpoints}
        matched[SERVICE_LABEL] = "replicas"
    else:
        spec = {"podMetricsEndpoints": endpoints}
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": settings.kind,
        "metadata": metadata(subject, subject.name, more_labels=settings.labels),
        "spec": {"selector": {"matchLabels": matched}, **spec},
    }


def _encrypted(subject: Subject) -> Manifest:
    """Return the endpoint over TLS; the Secret has who vouches for its certificate."""
    authority = {"name": subject.admin_secret, "key": AUTHORITY_FILE}
    return {
        "port": ADMIN_TLS_PORT_NAME,
        "path": METRICS_PATH,
        "scheme": "https",
        "tlsConfig": {"ca": {"secret": authority}, "serverName": subject.admin_host},
        "relabelings": [{**_SERVES_TLS, "action": "keep"}],
    }


def _plain() -> Manifest:
    """Return the endpoint of pods that serve no TLS."""
    return {
        "port": ADMIN_PORT_NAME,
        "path": METRICS_PATH,
        "relabelings": [{**_SERVES_TLS, "action": "drop"}],
    }


def _complete(endpoint: Manifest, subject: Subject) -> None:
    """Add what the Broker says, and what the operator was told for all of them."""
    interval, around = subject.spec.monitoring.interval, subject.installation.monitoring
    if interval is not None:
        endpoint["interval"] = format_duration(interval)
    endpoint["relabelings"] += around.relabelings
    if around.metric_relabelings:
        endpoint["metricRelabelings"] = list(around.metric_relabelings)
