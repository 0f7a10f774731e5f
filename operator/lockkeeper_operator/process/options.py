"""Options of an operator process."""

import json
import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass

from lockkeeper_operator.brokers.desired.subject import Installation, Monitoring

BROKER_IMAGE = "LOCKKEEPER_BROKER_IMAGE"
ANALYTICS_IMAGE = "LOCKKEEPER_ANALYTICS_IMAGE"
NAMESPACES = "LOCKKEEPER_NAMESPACES"
OPERATOR_NAMESPACE = "LOCKKEEPER_OPERATOR_NAMESPACE"
IDENTITY = "LOCKKEEPER_OPERATOR_POD"
ELECTION = "LOCKKEEPER_LEADER_ELECTION"
RESYNC = "LOCKKEEPER_RESYNC"
DOMAIN = "LOCKKEEPER_CLUSTER_DOMAIN"
LEASE = "LOCKKEEPER_LEASE"
ANALYTICS = "LOCKKEEPER_ANALYTICS"
BACKUPS = "LOCKKEEPER_BACKUPS"
PORT = "LOCKKEEPER_PORT"
CLASS = "LOCKKEEPER_CLASS"
PULL_SECRETS = "LOCKKEEPER_PULL_SECRETS"
MONITORING = "LOCKKEEPER_MONITORING"
"""Variables of the environment."""
DEFAULT_IMAGE, DEFAULT_NAMESPACE = "lockkeeper:latest", "lockkeeper-system"
DEFAULT_DOMAIN, DEFAULT_LEASE = "cluster.local", "lockkeeper-operator"
DEFAULT_RESYNC, DEFAULT_PORT = 600.0, 8080
NO = ("0", "false", "no")
LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Options:
    """How an operator is run. *namespaces* None stands for all; *resync* is in seconds.

    *analytics_image* is that of analyses which name none; empty: named after the brokers' image.
    Without *analytics* they are not carried out; without *backups* none are made.
    """

    installation: Installation
    identity: str
    analytics_image: str = ""
    analytics: bool = True
    backups: bool = True
    namespaces: tuple[str, ...] | None = None
    election: bool = True
    lease: str = DEFAULT_LEASE
    resync: float = DEFAULT_RESYNC
    host: str = "0.0.0.0"
    port: int = DEFAULT_PORT


def from_environment(said: Mapping[str, str] = os.environ) -> Options:
    """Return the options of an operator that a developer runs with `kopf run`.

    It holds no Lease unless it is asked to, and is to be seen from this machine only.
    """
    return Options(
        installation=Installation(
            said.get(BROKER_IMAGE, DEFAULT_IMAGE),
            said.get(OPERATOR_NAMESPACE, DEFAULT_NAMESPACE),
            domain=said.get(DOMAIN, DEFAULT_DOMAIN),
            class_name=said.get(CLASS, ""),
            pull_secrets=listed(said.get(PULL_SECRETS, "")) or (),
            monitoring=monitoring_of(said.get(MONITORING, "")),
        ),
        identity=said.get(IDENTITY) or socket.gethostname(),
        analytics_image=said.get(ANALYTICS_IMAGE, ""),
        analytics=said.get(ANALYTICS, "true").lower() not in NO,
        backups=said.get(BACKUPS, "true").lower() not in NO,
        namespaces=listed(said.get(NAMESPACES, "")),
        election=said.get(ELECTION, "no").lower() not in NO,
        lease=said.get(LEASE, DEFAULT_LEASE),
        resync=float(said.get(RESYNC, DEFAULT_RESYNC)),
        host=LOOPBACK,
        port=int(said.get(PORT, DEFAULT_PORT)),
    )


def monitoring_of(said: str) -> Monitoring:
    """Return what JSON says about monitors. Raises ValueError for what says nothing of the kind."""
    found = json.loads(said or "{}")
    if not isinstance(found, dict) or found.keys() - {"relabelings", "metricRelabelings"}:
        raise ValueError(f"expected relabelings and metricRelabelings, found {said}")
    if not all(isinstance(each, list) for each in found.values()):
        raise ValueError(f"expected lists, found {said}")
    return Monitoring(
        tuple(found.get("relabelings", ())), tuple(found.get("metricRelabelings", ()))
    )


def listed(namespaces: str) -> tuple[str, ...] | None:
    """Return names that are separated by commas, None for none."""
    found = tuple(filter(None, (name.strip() for name in namespaces.split(","))))
    return found or None
