"""Shape of a Broker's pods."""

from typing import Literal

from pydantic import Field

from lockkeeper_api.meta import ApiModel
from lockkeeper_api.raw import ObjectName, Raw, Strings


class Image(ApiModel):
    """The broker's container image."""

    name: str | None = Field(default=None, min_length=1, max_length=512, pattern=r"^\S+$")
    """Cluster: such as `registry.example/lockkeeper:1.2`; absent: that of the operator's release,
    taken by pods when they next start: a new operator alone restarts none."""
    pull_policy: Literal["IfNotPresent", "Always", "Never"] = "IfNotPresent"
    """Cluster: when nodes fetch it."""
    pull_secrets: list[ObjectName] = Field(default=[], max_length=8)
    """Cluster: Secrets with credentials for its registry."""


class Pods(ApiModel):
    """Where pods run, with what, and what else is in them."""

    labels: Strings = Field(default={})
    """Cluster: more labels."""
    annotations: Strings = Field(default={})
    """Cluster: more annotations."""
    node_selector: Strings = Field(default={})
    """Cluster: labels of the nodes."""
    affinity: Raw | None = None
    """Cluster: absent: replicas on different nodes where that is possible."""
    topology_spread_constraints: list[Raw] = Field(default=[], max_length=8)
    """Cluster: absent: over zones and nodes where that is possible; one without a labelSelector
    gets the Broker's."""
    tolerations: list[Raw] = Field(default=[], max_length=32)
    """Cluster: taints of nodes that pods may run on."""
    priority_class_name: ObjectName | None = None
    """Cluster: who goes first when nodes are full."""
    termination_grace_period_seconds: int = Field(default=60, ge=1, le=3600)
    """Cluster: time for a clean stop."""
    template_patch: Raw | None = None
    """Cluster: laid over the finished pod template last, lists of named things by name: sidecars,
    environment, volumes. It can break what the operator relies on."""
