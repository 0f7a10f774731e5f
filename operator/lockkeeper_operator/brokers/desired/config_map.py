"""ConfigMap: the configuration of the brokers, who is fenced, whether a loss is accepted."""

from lockkeeper_api.pod_names import ACCEPT_LOSS_FILE, FENCED_FILE
from lockkeeper_operator.brokers.desired.configuration import configuration
from lockkeeper_operator.brokers.desired.metadata import metadata
from lockkeeper_operator.brokers.desired.subject import Subject
from lockkeeper_operator.kubernetes.manifests import Manifest
from lockkeeper_operator.names import CONFIGURATION_FILE


def build(subject: Subject) -> Manifest:
    """Return the ConfigMap."""
    data = {CONFIGURATION_FILE: configuration(subject)}
    if subject.fenced:
        data[FENCED_FILE] = "".join(f"{pod}\n" for pod in sorted(subject.fenced))
    if subject.accepts_loss:
        data[ACCEPT_LOSS_FILE] = "true\n"
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata(subject, subject.name),
        "data": data,
    }
