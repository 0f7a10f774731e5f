"""Secret BROKER-networks: what the Broker's bridges log in with, and whom they trust."""

from lockkeeper_operator.brokers.desired.metadata import metadata
from lockkeeper_operator.brokers.desired.network_part import authority_file, password_file
from lockkeeper_operator.brokers.desired.subject import Subject
from lockkeeper_operator.kubernetes.encoding import encoded
from lockkeeper_operator.kubernetes.manifests import Manifest


def build(subject: Subject) -> Manifest | None:
    """Return the Secret, None for a Broker that dials no other. Pods need not wait for it."""
    values: dict[str, str] = {}
    for part in subject.networks:
        if part.connectors:
            values[password_file(part.user)] = part.password
        for connector, authority in part.authorities.items():
            values[authority_file(connector)] = authority
    if not values:
        return None
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": metadata(subject, subject.networks_secret),
        "type": "Opaque",
        "data": encoded(values),
    }
