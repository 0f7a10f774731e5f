"""PodMonitor or ServiceMonitor: where Prometheus finds the figures."""

from lockkeeper_api.quantities import format_duration
from lockkeeper_operator.desired.metadata import metadata, selector
from lockkeeper_operator.desired.subject import Manifest, Subject
from lockkeeper_operator.names import ADMIN_PORT_NAME, SERVICE_LABEL

METRICS_PATH = "/metrics"


def build(subject: Subject) -> Manifest | None:
    """Return the monitor, or None where none is wanted or the cluster does not know the kind."""
    settings = subject.spec.monitoring
    if not settings.enabled or settings.kind not in subject.surroundings.monitors:
        return None
    endpoint: Manifest = {"port": ADMIN_PORT_NAME, "path": METRICS_PATH}
    if settings.interval is not None:
        endpoint["interval"] = format_duration(settings.interval)
    matched = selector(subject)
    if settings.kind == "ServiceMonitor":
        spec: Manifest = {"endpoints": [endpoint]}
        matched[SERVICE_LABEL] = "replicas"
    else:
        spec = {"podMetricsEndpoints": [endpoint]}
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": settings.kind,
        "metadata": metadata(subject, subject.name, more_labels=settings.labels),
        "spec": {"selector": {"matchLabels": matched}, **spec},
    }
