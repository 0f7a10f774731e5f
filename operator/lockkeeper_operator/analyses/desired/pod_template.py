"""The pods of an analysis, restricted as Pod Security's standard asks.

The same template serves a Job of ours and the templates that Spark and its operators take.
"""

from collections.abc import Sequence

from lockkeeper_operator.analyses.desired.metadata import pod_labels
from lockkeeper_operator.analyses.desired.placing import affinity
from lockkeeper_operator.analyses.desired.volumes import mounts, volumes
from lockkeeper_operator.analyses.names import (
    APACHE_LABEL,
    DRIVER,
    DRIVER_CONTAINER,
    EXECUTOR,
    EXECUTOR_CONTAINER,
    KUBEFLOW_LABEL,
    PAGE,
    SPARK_USER,
)
from lockkeeper_operator.analyses.subject import AnalysisSubject
from lockkeeper_operator.kubernetes.jobs import JOB_LABEL
from lockkeeper_operator.kubernetes.manifests import Manifest
from lockkeeper_operator.kubernetes.patch import patched
from lockkeeper_operator.names import TEMPORARY_PATH

CONTAINERS = {DRIVER: DRIVER_CONTAINER, EXECUTOR: EXECUTOR_CONTAINER, PAGE: "page"}
RUN_LABELS = {"sparkApplication": KUBEFLOW_LABEL, "apache": APACHE_LABEL}
"""Where the name of the run is, on a driver's pod; that of a Job has it elsewhere."""


def pod_template(subject: AnalysisSubject, role: str) -> Manifest:
    """Return the template of pods with that *role*, with the spec's own patch over all of it."""
    template: Manifest = {
        "metadata": {
            "labels": pod_labels(subject, role),
            "annotations": dict(subject.spec.pods.annotations),
        },
        "spec": _spec(subject, role),
    }
    patch = subject.spec.pods.template_patch if role != PAGE else None
    result: Manifest = patched(template, patch or {})
    return result


def _spec(subject: AnalysisSubject, role: str) -> Manifest:
    pods = subject.spec.pods
    optional = {
        "affinity": affinity(subject, role),
        "imagePullSecrets": [{"name": name} for name in subject.pull_secrets],
        "nodeSelector": dict(pods.node_selector),
        "tolerations": list(pods.tolerations),
        "priorityClassName": pods.priority_class_name,
        "topologySpreadConstraints": list(pods.topology_spread_constraints),
    }
    return {
        "automountServiceAccountToken": role == DRIVER,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": pods.termination_grace_period_seconds,
        "securityContext": security(subject),
        "containers": [container(subject, role)],
        "volumes": volumes(subject, role),
        **({"serviceAccountName": subject.account} if role == DRIVER else {}),
        **{name: value for name, value in optional.items() if value},
    }


def container(subject: AnalysisSubject, role: str, arguments: Sequence[str] = ()) -> Manifest:
    """Return the container; *arguments* are for the image's entry point."""
    found: Manifest = {
        "name": CONTAINERS[role],
        "image": subject.image,
        "imagePullPolicy": subject.spec.image.pull_policy,
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        },
        "env": _environment(subject, role),
        "volumeMounts": mounts(subject, role),
    }
    if arguments:
        found["args"] = list(arguments)
    if subject.spec.credentials is not None and role != PAGE:
        found["envFrom"] = [{"secretRef": {"name": subject.spec.credentials}}]
    if role == DRIVER:
        # Whoever asks why it failed gets the last lines of its log.
        found["terminationMessagePolicy"] = "FallbackToLogsOnError"
    return found


def security(subject: AnalysisSubject) -> Manifest:
    """Return the security context of a pod."""
    return {
        "runAsNonRoot": True,
        "runAsUser": SPARK_USER,
        "runAsGroup": SPARK_USER,
        "fsGroup": subject.journal.group,
        "fsGroupChangePolicy": "OnRootMismatch",
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def _environment(subject: AnalysisSubject, role: str) -> list[Manifest]:
    if role != DRIVER:
        return [{"name": "HOME", "value": TEMPORARY_PATH}]
    label = RUN_LABELS.get(subject.engine, JOB_LABEL)
    return [
        {"name": "HOME", "value": TEMPORARY_PATH},
        _from_pod("LOCKKEEPER_POD", "metadata.name"),
        _from_pod("LOCKKEEPER_NAMESPACE", "metadata.namespace"),
        _from_pod("LOCKKEEPER_RUN", f"metadata.labels['{label}']"),
    ]


def _from_pod(name: str, path: str) -> Manifest:
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}
