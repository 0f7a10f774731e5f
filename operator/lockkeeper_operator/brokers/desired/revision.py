"""Revision of a Broker: its change makes pods start anew.

It is a hash of what the *spec says*, never of what builders make of it. So a new release of the
operator, with other builders, another default image or new fields, changes no revision, and thus
restarts nothing; its pod template waits until a pod starts for another reason.
"""

from lockkeeper_api.broker import BrokerSpec, Listener
from lockkeeper_api.changes import LIVE, OPERATOR, Exclusion, without
from lockkeeper_api.meta import ApiModel
from lockkeeper_operator.brokers.desired.subject import Subject
from lockkeeper_operator.kubernetes.hashes import hash_of
from lockkeeper_operator.kubernetes.manifests import Manifest
from lockkeeper_operator.names import RESTART_ANNOTATION

_UNHEEDED = without(BrokerSpec, LIVE, OPERATOR)


def revision_of(subject: Subject) -> str:
    """Return what the pods of a Broker are to be brought to.

    Defaults do not count: that the API server wrote them down, or that a new release has more of
    them, is no change.
    """
    said = {
        name: value
        for name, value in _said(subject.spec, {**_UNHEEDED, "listeners": True}).items()
        if value not in ({}, [])
    }
    listeners = [
        _said(listener, without(Listener, LIVE, OPERATOR)) for listener in subject.spec.listeners
    ]
    return hash_of([said, listeners, subject.annotations.get(RESTART_ANNOTATION, "")])


def _said(model: ApiModel, excluded: Exclusion) -> Manifest:
    said: Manifest = model.model_dump(
        mode="json", by_alias=True, exclude_defaults=True, exclude=excluded
    )
    return said
