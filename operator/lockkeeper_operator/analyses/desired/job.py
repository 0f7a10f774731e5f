"""Job: a single run of the native and the local engine; its pod is Spark's driver."""

from lockkeeper_api.analysis.sizing import SparkResources
from lockkeeper_api.units import MEBIBYTE
from lockkeeper_operator.analyses.desired.arguments import arguments
from lockkeeper_operator.analyses.desired.metadata import metadata
from lockkeeper_operator.analyses.desired.pod_template import container, pod_template
from lockkeeper_operator.analyses.desired.spark_settings import mebibytes, spark_settings
from lockkeeper_operator.analyses.names import (
    APPLICATION,
    BLOCK_MANAGER_PORT,
    DRIVER,
    DRIVER_PORT,
    SETTINGS_FILE,
    SETTINGS_PATH,
)
from lockkeeper_operator.analyses.subject import AnalysisSubject
from lockkeeper_operator.kubernetes.manifests import Manifest
from lockkeeper_operator.kubernetes.patch import patched

API_SERVER = "k8s://https://kubernetes.default.svc"


def build(subject: AnalysisSubject) -> Manifest | None:
    """Return the Job, or None for other engines and where a schedule makes Jobs."""
    if subject.engine not in ("native", "local") or subject.spec.schedule is not None:
        return None
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata(subject, subject.run),
        "spec": job_spec(subject),
    }


def job_spec(subject: AnalysisSubject) -> Manifest:
    """Return the specification of a Job."""
    spec = subject.spec
    found: Manifest = {
        "backoffLimit": spec.backoff_limit,
        "podReplacementPolicy": "Failed",
        "template": _template(subject),
    }
    if spec.deadline is not None:
        found["activeDeadlineSeconds"] = int(spec.deadline.total_seconds())
    if spec.schedule is not None and spec.ttl_seconds_after_finished is not None:
        found["ttlSecondsAfterFinished"] = spec.ttl_seconds_after_finished
    return found


def _template(subject: AnalysisSubject) -> Manifest:
    """Return the driver's pod; two drivers of one Job are never there at a time."""
    driver = container(subject, DRIVER, driver_arguments(subject))
    driver["env"] += [
        {
            "name": "SPARK_DRIVER_BIND_ADDRESS",
            "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}},
        }
    ]
    driver["resources"] = resources(subject.spec.resources)
    if subject.engine == "native":
        driver["ports"] = [
            {"name": "driver-rpc", "containerPort": DRIVER_PORT},
            {"name": "block-manager", "containerPort": BLOCK_MANAGER_PORT},
        ]
    template = pod_template(subject, DRIVER)
    own = {"restartPolicy": "Never", "containers": [driver]}
    result: Manifest = patched({"metadata": {}, "spec": own}, template)
    return result


def resources(wanted: SparkResources) -> Manifest:
    """Return what Kubernetes is asked for: Java's heap and what is beside it."""
    memory = f"{-(-(wanted.memory + wanted.overhead) // MEBIBYTE)}Mi"
    return {
        "requests": {"cpu": str(wanted.cores), "memory": memory},
        "limits": {"memory": memory},
    }


def driver_arguments(subject: AnalysisSubject) -> list[str]:
    """Return what the image's entry point is told; the kubelet fills in the pod's name."""
    if subject.engine == "local":
        settings = spark_settings(subject)
        settings["spark.driver.memory"] = mebibytes(subject.spec.resources.memory)
        given = [part for name in settings for part in ("--conf", f"{name}={settings[name]}")]
        where = ["--master", f"local[{subject.spec.resources.cores}]", *given]
    else:
        pod = "spark.kubernetes.driver.pod.name=$(LOCKKEEPER_POD)"
        file = f"{SETTINGS_PATH}/{SETTINGS_FILE}"
        where = ["--master", API_SERVER, "--properties-file", file, "--conf", pod]
    return ["driver", *where, APPLICATION, *arguments(subject)]
