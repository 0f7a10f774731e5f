"""Tools that all reconcilers share."""

from collections.abc import Callable
from dataclasses import dataclass

from lockkeeper_operator.certificates.authority import Authority
from lockkeeper_operator.kubernetes.api.errors import NOT_FOUND, ApiError
from lockkeeper_operator.kubernetes.api.kinds import BY_NAME
from lockkeeper_operator.kubernetes.api.server import ApiServer
from lockkeeper_operator.kubernetes.caches.caches import Caches
from lockkeeper_operator.kubernetes.clock import Clock
from lockkeeper_operator.kubernetes.manifests import Manifest
from lockkeeper_operator.kubernetes.namespaces import Namespaces
from lockkeeper_operator.kubernetes.recorder import Recorder
from lockkeeper_operator.polling.admin_endpoint import AdminEndpoints
from lockkeeper_operator.polling.poll_state import BrokerKey, PollStates


@dataclass(slots=True)
class Tools:
    """The API server, what is known of it, the brokers, and who tells people."""

    api: ApiServer
    caches: Caches
    namespaces: Namespaces
    poll_states: PollStates
    admin: AdminEndpoints
    authority: Authority
    recorder: Recorder
    clock: Clock
    ask: Callable[[BrokerKey], None]
    """Lets the pods of a Broker be asked as soon as possible."""
    cordoned: Callable[[], frozenset[str]]
    """Tells which nodes take no more pods."""
    brokers_version: Callable[[], int]
    """Tells a number that changes with any Broker, or with the labels of a namespace."""
    absent: Callable[[str], None]
    """Takes note of a kind that the cluster does not know, and need not."""

    async def write_status(self, resource: Manifest, status: Manifest | None) -> None:
        """Write the status of a resource; None is written already, one that is gone needs none."""
        if status is None:
            return
        metadata = resource["metadata"]
        change = {
            "apiVersion": resource["apiVersion"],
            "kind": resource["kind"],
            "metadata": {name: metadata[name] for name in ("name", "namespace", "uid")},
            "status": status,
        }
        try:
            written = await self.api.apply(change, force=True, subresource="status")
        except ApiError as error:
            # A uid that is another's by now is a conflict.
            if error.status == NOT_FOUND:
                return
            raise
        self.caches.put(BY_NAME[resource["kind"]], written)
