"""A broker process as a member of its cluster: what it shows there, from start to end."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lockkeeper.server.cluster.api_server import ACCOUNT, ApiServer, ApiServerAccess, in_cluster
from lockkeeper.server.cluster.identity import PodIdentity, pod_identity
from lockkeeper.server.cluster.role_label import RoleLabel
from lockkeeper.server.roles import MASTER, STANDBY

URL_VARIABLE = "LOCKKEEPER_API_SERVER"
"""Another address of the API server than the pod's own, such as that of `kubectl proxy`."""
ACCOUNT_VARIABLE = "LOCKKEEPER_SERVICE_ACCOUNT"
"""Another directory with `token` and `ca.crt` than the one that Kubernetes mounts."""
STEP_DOWN_SECONDS_MAX = 2.0


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The pod of a process, and how it reaches the API server if it does."""

    pod: PodIdentity
    api_server: ApiServerAccess | None = None


def surroundings(environment: Mapping[str, str] = os.environ) -> Surroundings | None:
    """Return the pod that this process runs in, None outside of pods."""
    pod = pod_identity(environment)
    if pod is None:
        return None
    return Surroundings(pod, _access(environment) if pod.is_known_to_cluster else None)


def _access(environment: Mapping[str, str]) -> ApiServerAccess | None:
    account = Path(environment.get(ACCOUNT_VARIABLE, ACCOUNT))
    url = environment.get(URL_VARIABLE)
    if url is None:
        return in_cluster(environment, account)
    token, authority = account / "token", account / "ca.crt"
    return ApiServerAccess(
        url.rstrip("/"),
        token if token.exists() else None,
        authority if authority.exists() else None,
    )


class Membership:
    """Shows the process's role on its pod; without an API server it does nothing."""

    def __init__(self, where: Surroundings | None) -> None:
        self._api: ApiServer | None = None
        self._label: RoleLabel | None = None
        if where is not None and where.api_server is not None:
            self._api = ApiServer(where.api_server)
            self._label = RoleLabel(self._api, where.pod)

    def begin(self) -> None:
        """Say that this is no master, whatever a process in the same pod was before."""
        if self._label is not None:
            self._label.want(STANDBY)

    def lead(self) -> None:
        """Say that clients find the master here."""
        if self._label is not None:
            self._label.want(MASTER)

    async def step_down(self) -> None:
        """Keep new clients away; waits a moment for the API server."""
        if self._label is not None:
            self._label.want(STANDBY)
            await self._label.settled(STEP_DOWN_SECONDS_MAX)

    async def close(self) -> None:
        """End what runs here."""
        if self._label is not None:
            await self._label.close()
        if self._api is not None:
            await self._api.close()
