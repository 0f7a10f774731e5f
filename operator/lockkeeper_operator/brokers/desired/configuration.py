"""The configuration file of the broker in a pod: a Broker resource, as `lockkeeper up` reads it."""

from typing import Any

import yaml

from lockkeeper_api.broker import BrokerSpec, Listener
from lockkeeper_api.changes import OPERATOR, POD, names, without
from lockkeeper_api.cluster.access import Access
from lockkeeper_api.hashes import hash_of_text
from lockkeeper_api.meta import API_VERSION
from lockkeeper_operator.brokers.desired.network_part import networked
from lockkeeper_operator.brokers.desired.subject import Subject
from lockkeeper_operator.kubernetes.manifests import Manifest

EVERYWHERE = "0.0.0.0"
ELSEWHERE = names(BrokerSpec, POD, OPERATOR) | {"listeners", "admin", "access"}
"""Parts of the spec that the file does not have, or not as they are."""


def configuration(subject: Subject) -> str:
    """Return the text of the file; defaults are left out, so that it stays the same."""
    wanted = networked(subject.spec, subject.networks)
    spec: Manifest = {
        "listeners": [_listener(listener) for listener in wanted.listeners],
        "admin": {"host": EVERYWHERE, **_said(wanted.admin)},
        **_said(wanted, exclude=ELSEWHERE),
        "access": _access(subject, wanted.access),
    }
    resource = {
        "apiVersion": API_VERSION,
        "kind": "Broker",
        "metadata": {"name": subject.name, "namespace": subject.namespace},
        "spec": spec,
    }
    return yaml.safe_dump(resource, sort_keys=False)


def configuration_hash(subject: Subject) -> str:
    """Return the hash that a broker reports which runs with this configuration."""
    return hash_of_text(configuration(subject))


def _said(model: Any, **options: Any) -> Manifest:
    """Return what a model says besides its defaults."""
    said: Manifest = model.model_dump(mode="json", by_alias=True, exclude_defaults=True, **options)
    return said


def _listener(listener: Listener) -> Manifest:
    """Return a listener, on all addresses of the pod unless it says where."""
    return {"host": EVERYWHERE, **_said(listener, exclude=without(Listener, OPERATOR))}


def _access(subject: Subject, access: Access) -> Manifest:
    """Return who may connect; nobody else is let in."""
    users = [_said(user) for user in subject.users]
    return {**_said(access), "users": users}
