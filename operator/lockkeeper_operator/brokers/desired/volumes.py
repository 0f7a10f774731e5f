"""Volumes of the pods: the journal, the configuration, Secrets, room for temporaries."""

from lockkeeper_api.pod_names import ADMIN_TOKEN_FILE
from lockkeeper_operator.brokers.desired.subject import Subject
from lockkeeper_operator.kubernetes.manifests import Manifest
from lockkeeper_operator.names import (
    ADMIN_TLS_DIRECTORY,
    CERTIFICATE_FILE,
    CONFIGURATION_PATH,
    DATA_PATH,
    KEY_FILE,
    NETWORKS_PATH,
    SECRETS_PATH,
    TEMPORARY_PATH,
    USERS_FILE,
)

ADMIN_FILES = {
    ADMIN_TOKEN_FILE: ADMIN_TOKEN_FILE,
    CERTIFICATE_FILE: f"{ADMIN_TLS_DIRECTORY}/{CERTIFICATE_FILE}",
    KEY_FILE: f"{ADMIN_TLS_DIRECTORY}/{KEY_FILE}",
}
"""Where the pods have what is in the admin endpoint's Secret, by its keys."""
JOURNAL, CONFIGURATION, SECRETS, TEMPORARY = "journal", "configuration", "secrets", "temporary"
NETWORKS = "networks"


def data_directory(subject: Subject) -> str:
    """Return the directory of the journal, as the broker sees it."""
    path = subject.spec.storage.path.strip("/")
    return f"{DATA_PATH}/{path}" if path else DATA_PATH


def volumes(subject: Subject) -> list[Manifest]:
    """Return the volumes of a pod."""
    return [
        {"name": JOURNAL, "persistentVolumeClaim": {"claimName": subject.claim}},
        {"name": CONFIGURATION, "configMap": {"name": subject.name}},
        {"name": TEMPORARY, "emptyDir": {}},
        {"name": SECRETS, "projected": {"sources": _sources(subject)}},
        # There from the start: a Broker joins a network without a new pod.
        {"name": NETWORKS, "secret": {"secretName": subject.networks_secret, "optional": True}},
    ]


def mounts(subject: Subject) -> list[Manifest]:
    """Return where the container has them."""
    return [
        {"name": JOURNAL, "mountPath": DATA_PATH},
        {"name": CONFIGURATION, "mountPath": CONFIGURATION_PATH, "readOnly": True},
        {"name": TEMPORARY, "mountPath": TEMPORARY_PATH},
        {"name": SECRETS, "mountPath": SECRETS_PATH, "readOnly": True},
        {"name": NETWORKS, "mountPath": NETWORKS_PATH, "readOnly": True},
    ]


def _sources(subject: Subject) -> list[Manifest]:
    """Return the Secrets: the users' hashes as `users`, the admin endpoint's token as
    `admin-token`, its certificate as `admin-tls/tls.crt`, those of listeners as
    `tls/LISTENER/tls.crt`. Kubernetes brings changes of
    them to running pods.
    """
    found = [
        _source(subject.users_secret, {USERS_FILE: USERS_FILE}),
        _source(subject.admin_secret, ADMIN_FILES),
    ]
    for listener in subject.spec.listeners:
        if listener.tls is not None:
            keys = ["tls.crt", "tls.key"]
            if listener.tls.client_certificates != "Ignored":
                keys.append("ca.crt")
            paths = {key: f"tls/{listener.name}/{key}" for key in keys}
            secret = listener.tls.secret_name or subject.issued_secret(listener.name)
            found.append(_source(secret, paths))
    return found


def _source(secret: str, paths: dict[str, str]) -> Manifest:
    items = [{"key": key, "path": path} for key, path in paths.items()]
    return {"secret": {"name": secret, "items": items}}
