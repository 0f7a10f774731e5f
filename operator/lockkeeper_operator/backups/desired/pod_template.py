"""The pod that copies: the journal read-only, the target beside it."""

from lockkeeper_operator.backups.desired.placing import affinity
from lockkeeper_operator.backups.names import CONTAINER, JOURNAL_PATH, REPORT_PATH, TARGET_PATH
from lockkeeper_operator.backups.subject import BackupSubject, labels
from lockkeeper_operator.kubernetes.manifests import Manifest
from lockkeeper_operator.names import TEMPORARY_PATH

JOURNAL, TARGET, TEMPORARY = "journal", "target", "temporary"


def pod_template(subject: BackupSubject) -> Manifest:
    """Return the template, restricted as Pod Security's standard asks."""
    spec: Manifest = {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": subject.user,
            "runAsGroup": subject.journal.group,
            "fsGroup": subject.journal.group,
            "fsGroupChangePolicy": "OnRootMismatch",
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [_container(subject)],
        "volumes": _volumes(subject),
    }
    if subject.pull_secrets:
        spec["imagePullSecrets"] = [{"name": name} for name in subject.pull_secrets]
    placed = affinity(subject)
    if placed is not None:
        spec["affinity"] = placed
    return {"metadata": {"labels": labels(subject)}, "spec": spec}


def _container(subject: BackupSubject) -> Manifest:
    mounts: list[Manifest] = [
        {"name": JOURNAL, "mountPath": JOURNAL_PATH, "readOnly": True},
        {"name": TEMPORARY, "mountPath": TEMPORARY_PATH},
    ]
    if subject.spec.target.claim is not None:
        mounts.append({"name": TARGET, "mountPath": TARGET_PATH})
    found: Manifest = {
        "name": CONTAINER,
        "image": subject.spec.image.name or subject.default_image,
        "imagePullPolicy": subject.spec.image.pull_policy,
        "command": ["lockkeeper", "backup"],
        "args": [
            f"{JOURNAL_PATH}/{subject.journal.path}".rstrip("/"),
            target(subject),
            *("--keep", str(subject.spec.keep)),
            *("--report", REPORT_PATH),
        ],
        "env": [{"name": "HOME", "value": TEMPORARY_PATH}],
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        },
        "terminationMessagePath": REPORT_PATH,
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": mounts,
    }
    if subject.spec.credentials is not None:
        found["envFrom"] = [{"secretRef": {"name": subject.spec.credentials}}]
    return found


def target(subject: BackupSubject) -> str:
    """Return where backups go, as the pod sees it."""
    wanted = subject.spec.target
    if wanted.claim is None:
        return str(wanted.url)
    return f"{TARGET_PATH}/{(wanted.claim.path or subject.name).strip('/')}"


def _volumes(subject: BackupSubject) -> list[Manifest]:
    journal = {"claimName": subject.journal.claim, "readOnly": True}
    found: list[Manifest] = [
        {"name": JOURNAL, "persistentVolumeClaim": journal},
        {"name": TEMPORARY, "emptyDir": {}},
    ]
    claim = subject.spec.target.claim
    if claim is not None:
        found.append({"name": TARGET, "persistentVolumeClaim": {"claimName": claim.name}})
    return found
