"""Secret BROKER-users: the hashes of all passwords, for the pods.

Pods see no password, and one mounted file serves all users: whoever comes or goes later is
known to brokers that run, since Kubernetes brings them the changed file.
"""

from lockkeeper_operator.brokers.desired.metadata import metadata
from lockkeeper_operator.brokers.desired.subject import Subject
from lockkeeper_operator.kubernetes.encoding import encoded
from lockkeeper_operator.kubernetes.manifests import Manifest
from lockkeeper_operator.names import USERS_FILE


def build(subject: Subject) -> Manifest:
    """Return the Secret: lines of `NAME:HASH`. A user whose hash is not known has no line, and
    cannot connect.
    """
    known = subject.password_hashes
    lines = [f"{user.name}:{known[user.name]}\n" for user in subject.users if user.name in known]
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": metadata(subject, subject.users_secret),
        "type": "Opaque",
        "data": encoded({USERS_FILE: "".join(lines)}),
    }
