"""The pod that a process runs in, and how it reaches the API server: by its environment alone.

Never here: a library that takes time to load; `lease_handover.py` comes before all of them.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from lockkeeper.server.cluster.identity import PodIdentity, pod_identity

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
HOST_VARIABLE, PORT_VARIABLE = "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"
URL_VARIABLE = "LOCKKEEPER_API_SERVER"
"""Another address of the API server than the pod's own, such as that of `kubectl proxy`."""
ACCOUNT_VARIABLE = "LOCKKEEPER_SERVICE_ACCOUNT"
"""Another directory with `token` and `ca.crt` than the one that Kubernetes mounts."""


@dataclass(frozen=True, slots=True)
class ApiServerAccess:
    """Address of the API server, and the files with this process's credentials."""

    url: str
    token_file: Path | None = None
    authority_file: Path | None = None


@dataclass(frozen=True, slots=True)
class PodEnvironment:
    """The pod of a process, and how it reaches the API server if it does."""

    pod: PodIdentity
    api_server: ApiServerAccess | None = None

    def lease_path(self, broker: str) -> str:
        """Return where the API server has the Lease of *broker*."""
        return f"/apis/coordination.k8s.io/v1/namespaces/{self.pod.namespace}/leases/{broker}"


def now_text() -> str:
    """Return the time as the API server's objects tell it: UTC, in microseconds."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def pod_environment(environment: Mapping[str, str] = os.environ) -> PodEnvironment | None:
    """Return the pod that this process runs in, None outside of pods."""
    pod = pod_identity(environment)
    if pod is None:
        return None
    return PodEnvironment(pod, _access(environment) if pod.is_known_to_cluster else None)


def _access(environment: Mapping[str, str]) -> ApiServerAccess | None:
    account = Path(environment.get(ACCOUNT_VARIABLE, ACCOUNT))
    url = environment.get(URL_VARIABLE)
    if url is None:
        return _in_cluster(environment, account)
    token, authority = account / "token", account / "ca.crt"
    return ApiServerAccess(
        url.rstrip("/"),
        token if token.exists() else None,
        authority if authority.exists() else None,
    )


def _in_cluster(environment: Mapping[str, str], account: Path) -> ApiServerAccess | None:
    """Return how to reach the API server from a pod, None where nothing says that."""
    host, port = environment.get(HOST_VARIABLE, ""), environment.get(PORT_VARIABLE, "443")
    if not host:
        return None
    place = f"[{host}]" if ":" in host else host
    return ApiServerAccess(f"https://{place}:{port}", account / "token", account / "ca.crt")
