"""Secrets BROKER-LISTENER-tls: certificates that the operator's own authority has issued."""

from collections.abc import Iterator

from lockkeeper_operator.brokers.desired.metadata import metadata
from lockkeeper_operator.brokers.desired.subject import Subject
from lockkeeper_operator.kubernetes.encoding import encoded
from lockkeeper_operator.kubernetes.manifests import Manifest
from lockkeeper_operator.names import AUTHORITY_FILE, CERTIFICATE_FILE, KEY_FILE


def build(subject: Subject) -> Iterator[Manifest]:
    """Yield a Secret for each listener whose certificate is the operator's."""
    for listener, certificate in subject.listener_certificates.items():
        values = {
            CERTIFICATE_FILE: certificate.certificate,
            KEY_FILE: certificate.key,
            AUTHORITY_FILE: certificate.authority,
        }
        yield {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": metadata(subject, subject.issued_secret(listener)),
            "type": "kubernetes.io/tls",
            "data": encoded(values),
        }
