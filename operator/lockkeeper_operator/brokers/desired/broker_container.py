"""The container in which the broker runs."""

from lockkeeper_operator.brokers.desired.subject import Subject
from lockkeeper_operator.brokers.desired.volumes import data_directory, mounts
from lockkeeper_operator.kubernetes.manifests import Manifest
from lockkeeper_operator.names import (
    ADMIN_PORT_NAME,
    ADMIN_TLS_PORT_NAME,
    CONFIGURATION_FILE,
    CONFIGURATION_PATH,
    CONTAINER,
)

HEALTH = {"httpGet": {"path": "/healthz", "port": ADMIN_PORT_NAME}}
"""Answered by masters and standbys alike: a standby is healthy, too. Clients are kept away from
it by the label on its pod, not by its readiness."""
SILENCE_PERIODS_MAX = 30
"""Of 10 s each: a broker that reads a long journal may be silent for a while."""


def broker_container(subject: Subject) -> Manifest:
    """Return the container; the broker learns from its environment which pod it is in."""
    spec = subject.spec
    container: Manifest = {
        "name": CONTAINER,
        "image": spec.image.name or subject.installation.image,
        "imagePullPolicy": spec.image.pull_policy,
        "command": ["lockkeeper", "broker"],
        "args": [
            *("--file", f"{CONFIGURATION_PATH}/{CONFIGURATION_FILE}"),
            *("--data", data_directory(subject)),
            *("--log-format", "json"),
        ],
        "env": [
            _from_pod("LOCKKEEPER_POD", "metadata.name"),
            _from_pod("LOCKKEEPER_POD_UID", "metadata.uid"),
            _from_pod("LOCKKEEPER_NAMESPACE", "metadata.namespace"),
        ],
        "ports": [
            *({"containerPort": listener.port} for listener in spec.listeners),
            {"name": ADMIN_PORT_NAME, "containerPort": spec.admin.port},
            {"name": ADMIN_TLS_PORT_NAME, "containerPort": spec.admin.tls_port},
        ],
        "livenessProbe": {
            **HEALTH,
            "periodSeconds": 10,
            "timeoutSeconds": 5,
            "failureThreshold": SILENCE_PERIODS_MAX,
        },
        "readinessProbe": {**HEALTH, "periodSeconds": 5, "timeoutSeconds": 2},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": spec.security.read_only_root_filesystem,
        },
        "volumeMounts": mounts(subject),
    }
    if spec.resources is not None:
        container["resources"] = spec.resources
    return container


def _from_pod(name: str, path: str) -> Manifest:
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}
