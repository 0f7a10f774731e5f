"""SparkApplication of Apache's Spark operator: a single run."""

from lockkeeper_operator.analyses.desired.arguments import arguments
from lockkeeper_operator.analyses.desired.metadata import metadata
from lockkeeper_operator.analyses.desired.pod_template import pod_template
from lockkeeper_operator.analyses.desired.spark_application import with_deadline
from lockkeeper_operator.analyses.desired.spark_settings import sizes, spark_settings
from lockkeeper_operator.analyses.engine import APACHE_API
from lockkeeper_operator.analyses.names import (
    APPLICATION,
    DRIVER,
    DRIVER_CONTAINER,
    EXECUTOR,
    EXECUTOR_CONTAINER,
    SPARK_VERSION,
)
from lockkeeper_operator.analyses.subject import AnalysisSubject
from lockkeeper_operator.kubernetes.manifests import Manifest

RETRY_MILLISECONDS = 20_000


def build(subject: AnalysisSubject) -> Manifest | None:
    """Return the SparkApplication, or None for other engines."""
    if subject.engine != "apache":
        return None
    limit = subject.spec.backoff_limit
    return {
        "apiVersion": APACHE_API,
        "kind": "SparkApplication",
        "metadata": metadata(subject, subject.run),
        "spec": {
            "deploymentMode": "ClusterMode",
            "runtimeVersions": {"sparkVersion": SPARK_VERSION},
            "pyFiles": APPLICATION,
            "driverArgs": arguments(subject),
            "sparkConf": _settings(subject),
            "driverSpec": {"podTemplateSpec": _template(subject, DRIVER)},
            "executorSpec": {"podTemplateSpec": _template(subject, EXECUTOR)},
            "applicationTolerations": {
                "restartConfig": {
                    "restartPolicy": "OnFailure" if limit else "Never",
                    "maxRestartAttempts": limit,
                    "restartBackoffMillis": RETRY_MILLISECONDS,
                },
                # The driver's pod has the last lines of its log, and what it came to.
                "resourceRetainPolicy": "OnFailure",
            },
        },
    }


def _settings(subject: AnalysisSubject) -> dict[str, str]:
    image = subject.spec.image
    found = {
        **spark_settings(subject),
        **sizes(subject),
        "spark.kubernetes.namespace": subject.namespace,
        "spark.kubernetes.container.image": subject.image,
        "spark.kubernetes.container.image.pullPolicy": image.pull_policy,
        "spark.kubernetes.authenticate.driver.serviceAccountName": subject.account,
        "spark.kubernetes.driver.podTemplateContainerName": DRIVER_CONTAINER,
        "spark.kubernetes.executor.podTemplateContainerName": EXECUTOR_CONTAINER,
    }
    if image.pull_secrets:
        found["spark.kubernetes.container.image.pullSecrets"] = ",".join(image.pull_secrets)
    return found


def _template(subject: AnalysisSubject, role: str) -> Manifest:
    return with_deadline(subject, role, pod_template(subject, role))
