"""CronJob: regular backups."""

from lockkeeper_api.journal_backup import BackupSchedule
from lockkeeper_operator.backups.desired.job import job_spec
from lockkeeper_operator.backups.subject import BackupSubject, labels, metadata
from lockkeeper_operator.kubernetes.manifests import Manifest

LATE_SECONDS_MAX = 3600
"""A backup that could not begin for so long is left out."""
JOBS_KEPT = 3
"""Of those that ended, with their pods' logs, however it went."""


def build(subject: BackupSubject, schedule: BackupSchedule) -> Manifest:
    """Return the CronJob."""
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": metadata(subject),
        "spec": {
            "schedule": schedule.cron,
            "timeZone": schedule.time_zone,
            "concurrencyPolicy": "Forbid",
            "startingDeadlineSeconds": LATE_SECONDS_MAX,
            "successfulJobsHistoryLimit": JOBS_KEPT,
            "failedJobsHistoryLimit": JOBS_KEPT,
            "suspend": subject.spec.suspend,
            "jobTemplate": {
                "metadata": {"labels": labels(subject)},
                "spec": job_spec(subject),
            },
        },
    }
