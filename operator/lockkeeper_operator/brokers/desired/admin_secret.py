"""Secret BROKER-admin: the token that opens the admin endpoint of the Broker's pods, and the
certificate by which they are known there.
"""

from lockkeeper_api.pod_names import ADMIN_TOKEN_FILE
from lockkeeper_operator.brokers.desired.metadata import metadata
from lockkeeper_operator.brokers.desired.subject import Subject
from lockkeeper_operator.kubernetes.encoding import encoded
from lockkeeper_operator.kubernetes.manifests import Manifest
from lockkeeper_operator.names import AUTHORITY_FILE, CERTIFICATE_FILE, KEY_FILE


def build(subject: Subject) -> Manifest:
    """Return the Secret."""
    certificate = subject.admin_certificate
    values = {
        ADMIN_TOKEN_FILE: subject.admin_token,
        CERTIFICATE_FILE: certificate.certificate,
        KEY_FILE: certificate.key,
        AUTHORITY_FILE: certificate.authority,
    }
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": metadata(subject, subject.admin_secret),
        "type": "Opaque",
        "data": encoded(values),
    }
