"""Job: fills the journal's volume before the first broker starts."""

from lockkeeper_operator.brokers.desired.first_journal import FirstJournal
from lockkeeper_operator.brokers.desired.metadata import metadata
from lockkeeper_operator.brokers.desired.pod_template import pod_security, pull_secrets
from lockkeeper_operator.brokers.desired.subject import Subject
from lockkeeper_operator.brokers.desired.volumes import JOURNAL, TEMPORARY, data_directory
from lockkeeper_operator.kubernetes.hashes import hash_of
from lockkeeper_operator.kubernetes.manifests import Manifest
from lockkeeper_operator.names import (
    BOOTSTRAP_LABEL,
    COMPONENT_LABEL,
    DATA_PATH,
    NAME_LABEL,
    PART_OF_LABEL,
    TEMPORARY_PATH,
)

CONTAINER, SOURCE, SOURCE_PATH = "bootstrap", "source", "/source"
HASH_CHARACTERS = 6
BACKOFF_LIMIT = 2
"""How often a restore that failed is tried again, later each time."""


def build(subject: Subject) -> Manifest | None:
    """Return the Job, or None for a Broker that begins with nothing or a snapshot, or not yet.

    What asks for something else has another name: a Job cannot be changed.
    """
    source = subject.first_journal
    if source is None or source.problem or source.snapshot:
        return None
    asked = [_arguments(subject, source), source.claim, source.credentials, source.image]
    name = f"{subject.name}-bootstrap-{hash_of(asked)[:HASH_CHARACTERS]}"
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata(subject, name, more_labels={BOOTSTRAP_LABEL: subject.name}),
        "spec": {
            "backoffLimit": BACKOFF_LIMIT,
            "podReplacementPolicy": "Failed",
            "template": {
                "metadata": {"labels": _pod_labels(subject)},
                "spec": _pod(subject, source),
            },
        },
    }


def _pod_labels(subject: Subject) -> dict[str, str]:
    """Return labels that are not those of the Broker's own pods, which Services lead to."""
    return {
        NAME_LABEL: "lockkeeper-bootstrap",
        COMPONENT_LABEL: "bootstrap",
        PART_OF_LABEL: "lockkeeper",
        BOOTSTRAP_LABEL: subject.name,
    }


def _pod(subject: Subject, source: FirstJournal) -> Manifest:
    pods = subject.spec.pods
    secrets = source.pull_secrets if source.image else pull_secrets(subject)
    optional = {
        "imagePullSecrets": [{"name": name} for name in secrets],
        "nodeSelector": dict(pods.node_selector),
        "tolerations": list(pods.tolerations),
        "priorityClassName": pods.priority_class_name,
    }
    return {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": pod_security(subject),
        "containers": [_container(subject, source)],
        "volumes": _volumes(subject, source),
        **{name: value for name, value in optional.items() if value},
    }


def _container(subject: Subject, source: FirstJournal) -> Manifest:
    mounts: list[Manifest] = [
        {"name": JOURNAL, "mountPath": DATA_PATH},
        {"name": TEMPORARY, "mountPath": TEMPORARY_PATH},
    ]
    if source.claim:
        mounts.append({"name": SOURCE, "mountPath": SOURCE_PATH, "readOnly": True})
    found: Manifest = {
        "name": CONTAINER,
        "image": source.image or subject.spec.image.name or subject.installation.image,
        "imagePullPolicy": subject.spec.image.pull_policy,
        "command": ["lockkeeper", "restore"],
        "args": _arguments(subject, source),
        "env": [{"name": "HOME", "value": TEMPORARY_PATH}],
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        },
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": mounts,
    }
    if source.credentials:
        found["envFrom"] = [{"secretRef": {"name": source.credentials}}]
    return found


def _arguments(subject: Subject, source: FirstJournal) -> list[str]:
    """Return what `lockkeeper restore` is told; a journal that is there is left alone."""
    place = source.url or f"{SOURCE_PATH}/{source.path}".rstrip("/")
    return [
        *(place, data_directory(subject), "--if-empty"),
        *(("--journal",) if source.is_journal else ()),
        *(("--until", source.until) if source.until else ()),
    ]


def _volumes(subject: Subject, source: FirstJournal) -> list[Manifest]:
    found: list[Manifest] = [
        {"name": JOURNAL, "persistentVolumeClaim": {"claimName": subject.claim}},
        {"name": TEMPORARY, "emptyDir": {}},
    ]
    if source.claim:
        claim = {"claimName": source.claim, "readOnly": True}
        found.append({"name": SOURCE, "persistentVolumeClaim": claim})
    return found
