"""Metadata of an analysis's children."""

from collections.abc import Mapping

from lockkeeper_operator.analyses.names import (
    ANALYSIS_LABEL,
    DRIVER,
    PAGE,
    RESULTS_LABEL,
    SPARK_ROLE_LABEL,
)
from lockkeeper_operator.analyses.subject import AnalysisSubject, owner_reference
from lockkeeper_operator.kubernetes.manifests import Manifest
from lockkeeper_operator.names import (
    COMPONENT_LABEL,
    INSTANCE_LABEL,
    MANAGED_BY_LABEL,
    NAME_LABEL,
    PART_OF_LABEL,
)


def labels(subject: AnalysisSubject) -> dict[str, str]:
    """Return the labels of every child."""
    return {
        NAME_LABEL: "lockkeeper-analysis",
        INSTANCE_LABEL: subject.instance,
        COMPONENT_LABEL: "analysis",
        PART_OF_LABEL: "lockkeeper",
        MANAGED_BY_LABEL: "lockkeeper-operator",
        ANALYSIS_LABEL: subject.name,
    }


def pod_labels(subject: AnalysisSubject, role: str) -> dict[str, str]:
    """Return the labels of pods with that *role*: driver, executor or page."""
    more = {RESULTS_LABEL: subject.name} if subject.served and role in (DRIVER, PAGE) else {}
    return {**subject.spec.pods.labels, **labels(subject), SPARK_ROLE_LABEL: role, **more}


def selector(subject: AnalysisSubject, role: str) -> dict[str, str]:
    """Return the labels that only pods with that *role* have."""
    return {ANALYSIS_LABEL: subject.name, SPARK_ROLE_LABEL: role}


def metadata(
    subject: AnalysisSubject, name: str, annotations: Mapping[str, str] | None = None
) -> Manifest:
    """Return the metadata of a child."""
    found: Manifest = {
        "name": name,
        "namespace": subject.namespace,
        "labels": labels(subject),
        "ownerReferences": [owner_reference(subject)],
    }
    if annotations:
        found["annotations"] = dict(annotations)
    return found
