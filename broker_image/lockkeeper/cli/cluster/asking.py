"""Questions to the brokers of a Broker in a cluster: through a forwarded admin port."""

from collections.abc import Iterator
from contextlib import contextmanager

from lockkeeper.cli.admin import Status, ask
from lockkeeper.cli.cluster.forwarding import admin_port, admin_token, forwarded
from lockkeeper.cli.cluster.kubectl import Kubectl, Manifest
from lockkeeper.cli.secrets import remember_token


@contextmanager
def admin_endpoint(kubectl: Kubectl, name: str, pod: Manifest) -> Iterator[str]:
    """Give the address at which the broker in a pod of *name* answers, while the block runs.

    Raises KubectlError where the pod cannot be reached.
    """
    port = admin_port(pod)
    remember_token(admin_token(kubectl, name))
    with forwarded(kubectl, pod["metadata"]["name"], (port,)) as ports:
        yield f"http://127.0.0.1:{ports[port]}"


def status_of(kubectl: Kubectl, name: str, pod: Manifest) -> Status:
    """Return what the broker in a pod says of itself. Raises KubectlError, AdminError."""
    with admin_endpoint(kubectl, name, pod) as address:
        found: Status = ask(address, "status")
        return found
