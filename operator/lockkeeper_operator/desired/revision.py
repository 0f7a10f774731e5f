"""Revision of a Broker: its change makes pods start anew.

It is a hash of what the *spec says*, never of what builders make of it. So a new release of the
operator, with other builders, another default image or new fields, changes no revision, and thus
restarts nothing; its pod template waits until a pod starts for another reason.
"""

from typing import Any

from lockkeeper_api.meta import ApiModel
from lockkeeper_operator.desired.hashes import hash_of
from lockkeeper_operator.desired.subject import Manifest, Subject
from lockkeeper_operator.names import RESTART_ANNOTATION

WITHOUT_RESTART: dict[str, Any] = {
    "replicas": True,
    "paused": True,
    "hibernated": True,
    "update": True,
    "disruption_budget": True,
    "monitoring": True,
    "allowed_destinations": True,
    "analytics": True,
    "storage": {"size": True, "labels": True, "deletion_policy": True},
    "listeners": True,  # Said one by one, without their Services.
    "security": {"network_policy": True},
    # What brokers take over while they run: a change is pushed to them.
    "destination_policies": True,
    "access": True,
}
"""Parts of the spec whose change reaches a Broker that goes on running."""


def revision_of(subject: Subject) -> str:
    """Return what the pods of a Broker are to be brought to.

    Defaults do not count: that the API server wrote them down, or that a new release has more of
    them, is no change.
    """
    said = {
        name: value
        for name, value in _said(subject.spec, WITHOUT_RESTART).items()
        if value not in ({}, [])
    }
    listeners = [_said(listener, {"service": True}) for listener in subject.spec.listeners]
    return hash_of([said, listeners, subject.annotations.get(RESTART_ANNOTATION, "")])


def _said(model: ApiModel, without: dict[str, Any]) -> Manifest:
    said: Manifest = model.model_dump(
        mode="json", by_alias=True, exclude_defaults=True, exclude=without
    )
    return said
