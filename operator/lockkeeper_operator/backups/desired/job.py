"""Job: one backup."""

from lockkeeper_operator.backups.desired.pod_template import pod_template
from lockkeeper_operator.backups.subject import BackupSubject, metadata
from lockkeeper_operator.kubernetes.manifests import Manifest

BACKOFF_LIMIT = 2
"""How often a backup that failed is tried again, later each time."""


def build(subject: BackupSubject) -> Manifest:
    """Return the Job of a JournalBackup without a schedule."""
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata(subject),
        "spec": job_spec(subject),
    }


def job_spec(subject: BackupSubject) -> Manifest:
    """Return the specification of a Job; two pods of one are never there at a time."""
    return {
        "backoffLimit": BACKOFF_LIMIT,
        "podReplacementPolicy": "Failed",
        "template": pod_template(subject),
    }
