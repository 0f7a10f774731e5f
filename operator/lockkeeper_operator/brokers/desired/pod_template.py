"""The pods of a Broker: one container, restricted as Pod Security's standard asks."""

from collections.abc import Sequence

from lockkeeper_operator.brokers.desired.broker_container import broker_container
from lockkeeper_operator.brokers.desired.metadata import labels, selector
from lockkeeper_operator.brokers.desired.revision import revision_of
from lockkeeper_operator.brokers.desired.subject import Subject
from lockkeeper_operator.brokers.desired.volumes import volumes
from lockkeeper_operator.kubernetes.manifests import Manifest
from lockkeeper_operator.kubernetes.patch import patched
from lockkeeper_operator.names import (
    ADMIN_TLS_ANNOTATION,
    CONTAINER,
    HOST_NAME_LABEL,
    REVISION_ANNOTATION,
)

ZONE_LABEL = "topology.kubernetes.io/zone"
SPREAD = tuple(
    {"maxSkew": 1, "topologyKey": label, "whenUnsatisfiable": "ScheduleAnyway"}
    for label in (ZONE_LABEL, HOST_NAME_LABEL)
)
"""Where the spec says nothing: no zone or node that fails takes all replicas with it. The scheduler
may do otherwise: a cluster of one zone, or of one node, runs them all."""


def pod_template(subject: Subject) -> Manifest:
    """Return the template, with the spec's own patch over all of it."""
    pods = subject.spec.pods
    template = {
        "metadata": {
            "labels": {**pods.labels, **labels(subject)},
            "annotations": {
                "kubectl.kubernetes.io/default-container": CONTAINER,
                **pods.annotations,
                REVISION_ANNOTATION: revision_of(subject),
                ADMIN_TLS_ANNOTATION: str(subject.spec.admin.tls_port),
            },
        },
        "spec": _spec(subject),
    }
    result: Manifest = patched(template, pods.template_patch or {})
    return result


def _spec(subject: Subject) -> Manifest:
    pods = subject.spec.pods
    optional = {
        "imagePullSecrets": [{"name": name} for name in pull_secrets(subject)],
        "nodeSelector": dict(pods.node_selector),
        "tolerations": list(pods.tolerations),
        "priorityClassName": pods.priority_class_name,
        "topologySpreadConstraints": _spread(subject),
    }
    return {
        "serviceAccountName": subject.name,
        "automountServiceAccountToken": True,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": pods.termination_grace_period_seconds,
        "securityContext": pod_security(subject),
        "affinity": pods.affinity if pods.affinity is not None else _apart(subject),
        "containers": [broker_container(subject)],
        "volumes": volumes(subject),
        **{name: value for name, value in optional.items() if value},
    }


def pull_secrets(subject: Subject) -> Sequence[str]:
    """Return the spec's, or for the release's own image those of the release."""
    image = subject.spec.image
    if image.pull_secrets or image.name is not None:
        return image.pull_secrets
    return subject.installation.pull_secrets


def pod_security(subject: Subject) -> Manifest:
    """Return the security context of pods that write the journal."""
    security = subject.spec.security
    return {
        "runAsNonRoot": True,
        "runAsUser": security.run_as_user,
        "runAsGroup": security.fs_group,
        "fsGroup": security.fs_group,
        "fsGroupChangePolicy": security.fs_group_change_policy,
        "seccompProfile": {"type": security.seccomp_profile},
    }


def _apart(subject: Subject) -> Manifest:
    """Return the wish for different nodes; where there is one node only, pods share it."""
    term = {
        "topologyKey": HOST_NAME_LABEL,
        "labelSelector": {"matchLabels": selector(subject)},
    }
    preferred = [{"weight": 100, "podAffinityTerm": term}]
    return {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}


def _spread(subject: Subject) -> list[Manifest]:
    own = {"labelSelector": {"matchLabels": selector(subject)}}
    return [{**own, **given} for given in subject.spec.pods.topology_spread_constraints or SPREAD]
