"""Deployment: a pod that serves the results to browsers."""

from lockkeeper_operator.analyses.desired.metadata import metadata, pod_labels, selector
from lockkeeper_operator.analyses.desired.placing import affinity
from lockkeeper_operator.analyses.desired.pod_template import container, security
from lockkeeper_operator.analyses.desired.volumes import RESULTS
from lockkeeper_operator.analyses.names import PAGE, RESULTS_PATH
from lockkeeper_operator.analyses.subject import AnalysisSubject
from lockkeeper_operator.kubernetes.manifests import Manifest

PORT = 8080
MEMORY = {"requests": {"cpu": "10m", "memory": "32Mi"}, "limits": {"memory": "128Mi"}}


def build(subject: AnalysisSubject) -> Manifest | None:
    """Return the Deployment, or None where results go elsewhere.

    Its pod is ended before its successor begins: the volume may be on one node only.
    """
    if subject.served is None:
        return None
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata(subject, subject.page),
        "spec": {
            "replicas": 1,
            "strategy": {"type": "Recreate"},
            "selector": {"matchLabels": selector(subject, PAGE)},
            "template": {
                "metadata": {"labels": pod_labels(subject, PAGE)},
                "spec": _pod(subject),
            },
        },
    }


def _pod(subject: AnalysisSubject) -> Manifest:
    spec = subject.spec
    served = container(subject, PAGE, ("serve", RESULTS_PATH, str(PORT)))
    served |= {
        "ports": [{"name": "page", "containerPort": PORT}],
        "readinessProbe": {"tcpSocket": {"port": "page"}, "periodSeconds": 5},
        "resources": MEMORY,
        "volumeMounts": [{"name": RESULTS, "mountPath": RESULTS_PATH, "readOnly": True}],
    }
    optional = {
        "affinity": affinity(subject, PAGE),
        "imagePullSecrets": [{"name": name} for name in subject.pull_secrets],
        "nodeSelector": dict(spec.pods.node_selector),
        "tolerations": list(spec.pods.tolerations),
    }
    results = {"name": RESULTS, "persistentVolumeClaim": {"claimName": subject.page}}
    return {
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": security(subject),
        "containers": [served],
        "volumes": [results],
        **{name: value for name, value in optional.items() if value},
    }
