"""Security of pods: their rights, and who reaches them."""

from typing import Annotated, Literal

from pydantic import Field

from lockkeeper_api.changes import OPERATOR
from lockkeeper_api.meta import ApiModel
from lockkeeper_api.raw import Raw


class NetworkPolicy(ApiModel):
    """Peers that may connect to the pods."""

    enabled: bool = True
    """Cluster: write a NetworkPolicy."""
    clients: list[Raw] = Field(default=[], max_length=32)
    """Cluster: peers that may connect to listeners, as in a NetworkPolicy; empty: everybody."""
    monitors: list[Raw] = Field(default=[], max_length=8)
    """Cluster: peers besides the operator that may connect to the admin endpoint. Empty: nobody, or
    every pod of the cluster where monitoring is enabled."""


class Security(ApiModel):
    """Rights of pods; the defaults fit the restricted Pod Security Standard."""

    run_as_user: int = Field(default=10001, ge=1, le=2**31 - 1)
    """Cluster: user id of the process; for a journal of another broker, the owner of its files."""
    fs_group: int = Field(default=10001, ge=1, le=2**31 - 1)
    """Cluster: group id that volumes are given to."""
    fs_group_change_policy: Literal["OnRootMismatch", "Always"] = "OnRootMismatch"
    """Cluster: time of that change. Always visits every file at every start of a pod."""
    read_only_root_filesystem: bool = True
    """Cluster: let the process write only the journal and temporary files."""
    seccomp_profile: Literal["RuntimeDefault", "Unconfined"] = "RuntimeDefault"
    """Cluster: seccomp profile; Unconfined violates the restricted Pod Security Standard."""
    network_policy: Annotated[NetworkPolicy, OPERATOR] = NetworkPolicy()
    """Cluster: peers that may connect."""
