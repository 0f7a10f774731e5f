"""Tools that all reconcilers share."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from pydantic import BaseModel, ValidationError

from lockkeeper_api.complaints import complaint
from lockkeeper_operator.certificates.authority import Authority
from lockkeeper_operator.kubernetes.api.errors import NOT_FOUND, ApiError
from lockkeeper_operator.kubernetes.api.kinds import BY_NAME
from lockkeeper_operator.kubernetes.api.server import ApiServer
from lockkeeper_operator.kubernetes.caches.caches import Caches
from lockkeeper_operator.kubernetes.clock import Clock
from lockkeeper_operator.kubernetes.events import Event
from lockkeeper_operator.kubernetes.manifests import Manifest
from lockkeeper_operator.kubernetes.namespaces import Namespaces
from lockkeeper_operator.kubernetes.recorder import Recorder
from lockkeeper_operator.polling.admin_endpoint import AdminEndpoints
from lockkeeper_operator.polling.poll_state import BrokerKey, PollStates

InvalidStatus: TypeAlias = Callable[[str, dict[str, Any], int, str], dict[str, Any] | None]
"""Returns the status that tells of problems, by the previous one, the generation and the time;
None if it is written already."""


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

    async def refuse(
        self,
        resource: Manifest,
        spec: type[BaseModel],
        error: ValidationError,
        invalid_status: InvalidStatus,
    ) -> None:
        """Tell what is wrong with the spec of a resource, in its status and as an event."""
        found = (complaint(spec, each) for each in error.errors())
        problems = "; ".join(f"spec.{path}: {reason}" for path, reason in found)
        previous, generation = resource.get("status", {}), resource["metadata"]["generation"]
        status = invalid_status(problems, previous, generation, self.clock.text())
        if status is not None:
            await self.write_status(resource, status)
            await self.recorder.tell(resource, Event("Warning", "InvalidSpec", problems))
