"""Secret BROKER-admin: the token that opens the admin endpoint of the Broker's pods."""

from lockkeeper_operator.desired.encoding import encoded
from lockkeeper_operator.desired.metadata import metadata
from lockkeeper_operator.desired.subject import Manifest, Subject
from lockkeeper_operator.names import ADMIN_TOKEN_FILE


def build(subject: Subject) -> Manifest:
    """Return the Secret."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": metadata(subject, subject.admin_secret),
        "type": "Opaque",
        "data": encoded({ADMIN_TOKEN_FILE: subject.admin_token}),
    }
