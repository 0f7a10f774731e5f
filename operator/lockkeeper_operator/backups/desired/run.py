"""Job, CronJob or VolumeSnapshot: what makes a backup, or all of a schedule's.

Only VolumeSnapshots of a schedule are made one by one: see `plan.py`.
"""

from lockkeeper_operator.backups.desired import cron_job, job, snapshot
from lockkeeper_operator.backups.subject import BackupSubject
from lockkeeper_operator.kubernetes.manifests import Manifest


def run(subject: BackupSubject) -> Manifest:
    """Return it."""
    schedule, target = subject.spec.schedule, subject.spec.target.snapshot
    if target is not None:
        return snapshot.build(subject, target)
    return job.build(subject) if schedule is None else cron_job.build(subject, schedule)
