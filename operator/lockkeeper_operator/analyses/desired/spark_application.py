"""SparkApplication of the Kubeflow Spark operator: a single run."""

from lockkeeper_api.analysis.sizing import SparkResources
from lockkeeper_operator.analyses.desired.arguments import arguments
from lockkeeper_operator.analyses.desired.metadata import metadata
from lockkeeper_operator.analyses.desired.pod_template import pod_template
from lockkeeper_operator.analyses.desired.spark_settings import mebibytes, spark_settings
from lockkeeper_operator.analyses.engine import KUBEFLOW_API
from lockkeeper_operator.analyses.names import APPLICATION, DRIVER, EXECUTOR, SPARK_VERSION
from lockkeeper_operator.analyses.subject import EXECUTORS, AnalysisSubject
from lockkeeper_operator.kubernetes.manifests import Manifest

RETRY_SECONDS = 20
"""Before the first retry; that operator waits longer each time."""


def build(subject: AnalysisSubject) -> Manifest | None:
    """Return the SparkApplication, or None for other engines and with a schedule."""
    if subject.engine != "sparkApplication" or subject.spec.schedule is not None:
        return None
    return {
        "apiVersion": KUBEFLOW_API,
        "kind": "SparkApplication",
        "metadata": metadata(subject, subject.run),
        "spec": application_spec(subject),
    }


def application_spec(subject: AnalysisSubject) -> Manifest:
    """Return the specification of a SparkApplication.

    What pods are to be like is said by templates, which that operator hands to Spark: its own
    fields for volumes and the like need a webhook that not every installation has.
    """
    spec, executors = subject.spec, subject.executors
    found: Manifest = {
        "type": "Python",
        "pythonVersion": "3",
        "mode": "cluster",
        "sparkVersion": SPARK_VERSION,
        "image": subject.image,
        "imagePullPolicy": spec.image.pull_policy,
        "mainApplicationFile": APPLICATION,
        "arguments": arguments(subject),
        "sparkConf": spark_settings(subject),
        "restartPolicy": {
            "type": "OnFailure" if spec.backoff_limit else "Never",
            "onFailureRetries": spec.backoff_limit,
            "onFailureRetryInterval": RETRY_SECONDS,
            "onSubmissionFailureRetries": spec.backoff_limit,
            "onSubmissionFailureRetryInterval": RETRY_SECONDS,
        },
        "driver": {
            **_sizes(spec.resources),
            "serviceAccount": subject.account,
            "template": _template(subject, DRIVER),
        },
        "executor": {
            **_sizes(executors.resources),
            "instances": executors.instances or EXECUTORS,
            "deleteOnTermination": True,
            "template": _template(subject, EXECUTOR),
        },
    }
    if subject.pull_secrets:
        found["imagePullSecrets"] = list(subject.pull_secrets)
    if executors.dynamic_allocation is not None:
        found["dynamicAllocation"] = _dynamic(subject)
        del found["executor"]["instances"]
    if spec.schedule is not None and spec.ttl_seconds_after_finished is not None:
        found["timeToLiveSeconds"] = spec.ttl_seconds_after_finished
    return found


def _sizes(wanted: SparkResources) -> Manifest:
    return {
        "cores": wanted.cores,
        "memory": mebibytes(wanted.memory),
        "memoryOverhead": mebibytes(wanted.overhead),
    }


def _dynamic(subject: AnalysisSubject) -> Manifest:
    dynamic = subject.executors.dynamic_allocation
    assert dynamic is not None
    return {
        "enabled": True,
        "initialExecutors": dynamic.min,
        "minExecutors": dynamic.min,
        "maxExecutors": dynamic.max,
        "shuffleTrackingEnabled": True,
    }


def _template(subject: AnalysisSubject, role: str) -> Manifest:
    return with_deadline(subject, role, pod_template(subject, role))


def with_deadline(subject: AnalysisSubject, role: str, template: Manifest) -> Manifest:
    """Return *template* with the time that a driver may take, where there is a deadline."""
    deadline = subject.spec.deadline
    if deadline is None or role != DRIVER:
        return template
    seconds = int(deadline.total_seconds())
    return {**template, "spec": {**template["spec"], "activeDeadlineSeconds": seconds}}
