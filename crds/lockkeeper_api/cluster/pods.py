"""Shape of a Broker's pods."""

from typing import Literal

from pydantic import Field

from lockkeeper_api.meta import ApiModel
from lockkeeper_api.raw import ObjectName, Raw, Strings


class Image(ApiModel):
    """The broker's container image."""

    name: str | None = Field(default=None, min_length=1, max_length=512, pattern=r"^\S+$")
    """Cluster: image reference, such as `registry.example/lockkeeper:1.2`; absent: the image of the
    operator's release. Pods take it at their next start: a new operator alone restarts none."""
    pull_policy: Literal["IfNotPresent", "Always", "Never"] = "IfNotPresent"
    """Cluster: pull policy of the image."""
    pull_secrets: list[ObjectName] = Field(default=[], max_length=8)
    """Cluster: Secrets with credentials for its registry."""


class Pods(ApiModel):
    """Placement of pods, their labels, and more containers in them."""

    labels: Strings = Field(default={})
    """Cluster: additional labels."""
    annotations: Strings = Field(default={})
    """Cluster: additional annotations."""
    node_selector: Strings = Field(default={})
    """Cluster: labels of nodes that pods may run on."""
    affinity: Raw | None = None
    """Cluster: affinity of pods; absent: replicas prefer different nodes."""
    topology_spread_constraints: list[Raw] = Field(default=[], max_length=8)
    """Cluster: spread of pods; absent: over zones and nodes where possible. A constraint without a
    labelSelector gets the Broker's."""
    tolerations: list[Raw] = Field(default=[], max_length=32)
    """Cluster: taints of nodes that pods may run on."""
    priority_class_name: ObjectName | None = None
    """Cluster: PriorityClass of pods."""
    termination_grace_period_seconds: int = Field(default=60, ge=5, le=3600)
    """Cluster: seconds for a clean stop; a master takes up to 5 to hand over to a standby."""
    template_patch: Raw | None = None
    """Cluster: patch of the finished pod template; lists are merged by name: sidecars, environment,
    volumes. A patch can break settings that the operator relies on."""
