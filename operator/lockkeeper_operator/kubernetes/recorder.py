"""Writes Kubernetes events, each once in a while."""

import logging
import secrets
from collections import OrderedDict

from lockkeeper_operator.kubernetes.api.errors import ApiError
from lockkeeper_operator.kubernetes.api.server import ApiServer
from lockkeeper_operator.kubernetes.clock import Clock
from lockkeeper_operator.kubernetes.events import Event
from lockkeeper_operator.kubernetes.manifests import Manifest

QUIET_SECONDS = 600.0
REMEMBERED_MAX = 4096
COMPONENT = "lockkeeper-operator"
MESSAGE_CHARACTERS_MAX = 1024
log = logging.getLogger(__name__)


class Recorder:
    """Tells people what happened; that it could not is logged, and no more."""

    def __init__(self, api: ApiServer, clock: Clock, identity: str) -> None:
        self._api, self._clock, self._identity = api, clock, identity
        self._told: OrderedDict[tuple[str, str, str], float] = OrderedDict()

    async def tell(self, about: Manifest, event: Event) -> None:
        """Write *event* about an object, unless the same was written a short while ago."""
        metadata = about["metadata"]
        key = (metadata["uid"], event.reason, event.message)
        now = self._clock.monotonic()
        if now - self._told.get(key, -QUIET_SECONDS) < QUIET_SECONDS:
            return
        self._told[key] = now
        self._told.move_to_end(key)
        if len(self._told) > REMEMBERED_MAX:
            self._told.popitem(last=False)
        where = f"{metadata['namespace']}/{metadata['name']}"
        log.info("%s %s: %s: %s", about["kind"], where, event.reason, event.message)
        try:
            await self._api.tell(self._written(about, event))
        except ApiError as error:
            log.info("the operator cannot write event %s of %s: %s", event.reason, where, error)

    def _written(self, about: Manifest, event: Event) -> Manifest:
        metadata, now = about["metadata"], self._clock.text()
        name = f"{metadata['name']}.{secrets.token_hex(8)}"
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": metadata["namespace"]},
            "involvedObject": {
                "apiVersion": about["apiVersion"],
                "kind": about["kind"],
                "name": metadata["name"],
                "namespace": metadata["namespace"],
                "uid": metadata["uid"],
            },
            "type": event.type,
            "reason": event.reason,
            "message": event.message[:MESSAGE_CHARACTERS_MAX],
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
            "source": {"component": COMPONENT},
            "reportingComponent": COMPONENT,
            "reportingInstance": self._identity,
        }
