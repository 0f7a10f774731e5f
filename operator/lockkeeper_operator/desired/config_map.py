"""ConfigMap: the configuration file of the brokers, and which of them are fenced."""

from lockkeeper_api.pod_names import FENCED_FILE
from lockkeeper_operator.desired.configuration import configuration
from lockkeeper_operator.desired.metadata import metadata
from lockkeeper_operator.desired.subject import Manifest, Subject
from lockkeeper_operator.names import CONFIGURATION_FILE


def build(subject: Subject) -> Manifest:
    """Return the ConfigMap."""
    data = {CONFIGURATION_FILE: configuration(subject)}
    if subject.fenced:
        data[FENCED_FILE] = "".join(f"{pod}\n" for pod in sorted(subject.fenced))
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata(subject, subject.name),
        "data": data,
    }
