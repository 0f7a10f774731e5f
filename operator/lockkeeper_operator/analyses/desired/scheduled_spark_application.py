"""ScheduledSparkApplication of the Kubeflow Spark operator: regular runs."""

from lockkeeper_operator.analyses.desired.metadata import metadata
from lockkeeper_operator.analyses.desired.spark_application import application_spec
from lockkeeper_operator.analyses.engine import KUBEFLOW_API
from lockkeeper_operator.analyses.subject import AnalysisSubject
from lockkeeper_operator.kubernetes.manifests import Manifest


def build(subject: AnalysisSubject) -> Manifest | None:
    """Return the ScheduledSparkApplication, or None for other engines and without a schedule."""
    schedule = subject.spec.schedule
    if subject.engine != "sparkApplication" or schedule is None:
        return None
    return {
        "apiVersion": KUBEFLOW_API,
        "kind": "ScheduledSparkApplication",
        "metadata": metadata(subject, subject.run),
        "spec": {
            "schedule": schedule.cron,
            "timeZone": schedule.time_zone,
            "concurrencyPolicy": schedule.concurrency_policy,
            "suspend": subject.spec.suspend,
            "successfulRunHistoryLimit": schedule.successful_history_limit,
            "failedRunHistoryLimit": schedule.failed_history_limit,
            "template": application_spec(subject),
        },
    }
