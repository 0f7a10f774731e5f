"""Metadata of children: names, labels, owner."""

from collections.abc import Mapping

from lockkeeper_api.pod_names import ROLE_LABEL
from lockkeeper_operator.brokers.desired.subject import Subject, owner
from lockkeeper_operator.kubernetes.manifests import Manifest
from lockkeeper_operator.names import (
    COMPONENT_LABEL,
    INSTANCE_LABEL,
    MANAGED_BY_LABEL,
    MASTER,
    NAME_LABEL,
    PART_OF_LABEL,
)


def selector(subject: Subject) -> dict[str, str]:
    """Return the labels that the Broker's pods alone have; they never change."""
    return selector_of(subject.name)


def selector_of(broker: str) -> dict[str, str]:
    """Return the labels that the pods of a Broker alone have in its namespace."""
    return {NAME_LABEL: "lockkeeper", INSTANCE_LABEL: broker}


def master_selector(subject: Subject) -> dict[str, str]:
    """Return the labels that the master's pod alone has."""
    return {**selector(subject), ROLE_LABEL: MASTER}


def labels(subject: Subject) -> dict[str, str]:
    """Return the labels of every child."""
    return {
        **selector(subject),
        COMPONENT_LABEL: "broker",
        PART_OF_LABEL: "lockkeeper",
        MANAGED_BY_LABEL: "lockkeeper-operator",
    }


def metadata(
    subject: Subject,
    name: str,
    *,
    owned: bool = True,
    more_labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
) -> Manifest:
    """Return the metadata of a child; one that is not *owned* outlives its Broker.

    Labels of the operator win over *more_labels*.
    """
    found: Manifest = {
        "name": name,
        "namespace": subject.namespace,
        "labels": {**(more_labels or {}), **labels(subject)},
    }
    if annotations:
        found["annotations"] = dict(annotations)
    if owned:
        found["ownerReferences"] = [owner(subject)]
    return found
