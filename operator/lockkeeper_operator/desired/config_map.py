"""ConfigMap: the configuration file of the brokers."""

from lockkeeper_operator.desired.configuration import configuration
from lockkeeper_operator.desired.metadata import metadata
from lockkeeper_operator.desired.subject import Manifest, Subject
from lockkeeper_operator.names import CONFIGURATION_FILE


def build(subject: Subject) -> Manifest:
    """Return the ConfigMap."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata(subject, subject.name),
        "data": {CONFIGURATION_FILE: configuration(subject)},
    }
