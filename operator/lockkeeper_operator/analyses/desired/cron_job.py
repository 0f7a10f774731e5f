"""CronJob: regular runs of the native and the local engine."""

from lockkeeper_operator.analyses.desired.job import job_spec
from lockkeeper_operator.analyses.desired.metadata import labels, metadata
from lockkeeper_operator.analyses.subject import AnalysisSubject
from lockkeeper_operator.kubernetes.manifests import Manifest

LATE_SECONDS_MAX = 3600
"""A run that could not begin for so long is left out."""


def build(subject: AnalysisSubject) -> Manifest | None:
    """Return the CronJob, or None for other engines and without a schedule."""
    schedule = subject.spec.schedule
    if subject.engine not in ("native", "local") or schedule is None:
        return None
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": metadata(subject, subject.run),
        "spec": {
            "schedule": schedule.cron,
            "timeZone": schedule.time_zone,
            "concurrencyPolicy": schedule.concurrency_policy,
            "startingDeadlineSeconds": LATE_SECONDS_MAX,
            "successfulJobsHistoryLimit": schedule.successful_history_limit,
            "failedJobsHistoryLimit": schedule.failed_history_limit,
            "suspend": subject.spec.suspend,
            "jobTemplate": {
                "metadata": {"labels": labels(subject)},
                "spec": job_spec(subject),
            },
        },
    }
