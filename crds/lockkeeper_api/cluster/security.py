"""Security of pods: their rights, and who reaches them."""

from typing import Annotated, Literal

from pydantic import Field

from lockkeeper_api.changes import OPERATOR
from lockkeeper_api.meta import ApiModel
from lockkeeper_api.raw import Raw


class NetworkPolicy(ApiModel):
    """Who may connect to the pods."""

    enabled: bool = True
    """Cluster: write a NetworkPolicy at all."""
    clients: list[Raw] = Field(default=[], max_length=32)
    """Cluster: who reaches listeners, as peers of a NetworkPolicy; empty: everybody."""
    monitors: list[Raw] = Field(default=[], max_length=8)
    """Cluster: who, besides the operator, reaches the admin endpoint, as such peers; empty:
    nobody, or every pod of the cluster where monitoring is enabled."""


class Security(ApiModel):
    """How pods are confined; the defaults fit the restricted Pod Security Standard."""

    run_as_user: int = Field(default=10001, ge=1, le=2**31 - 1)
    """Cluster: user id; that of the journal's files, where they came from another broker."""
    fs_group: int = Field(default=10001, ge=1, le=2**31 - 1)
    """Cluster: group that volumes are given to."""
    fs_group_change_policy: Literal["OnRootMismatch", "Always"] = "OnRootMismatch"
    """Cluster: Always looks at every file whenever a pod starts."""
    read_only_root_filesystem: bool = True
    """Cluster: nothing but the journal and temporary files can be written."""
    seccomp_profile: Literal["RuntimeDefault", "Unconfined"] = "RuntimeDefault"
    """Cluster: system calls that there are; Unconfined is not restricted any more."""
    network_policy: Annotated[NetworkPolicy, OPERATOR] = NetworkPolicy()
    """Cluster: who may connect."""
