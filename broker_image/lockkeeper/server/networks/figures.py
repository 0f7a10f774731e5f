"""Figures of one bridge, for status and metrics; one that is dialled anew keeps counting."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Any

from lockkeeper.network.bridge import Bridge
from lockkeeper.network.settings import BridgeSettings
from lockkeeper.protocols.cluster import Cluster

logger = logging.getLogger(__name__)

COUNTERS = ("enqueued", "dequeued", "bytes", "replayed", "received", "duplicates")


class BridgeRecord:
    """Tells of a bridge: of the present one, and what those before it counted.

    `is_over` is done with the present one's end, `forgotten` called with it if that was the last.
    `clusters` hear which broker a bridge leads to.
    """

    def __init__(
        self,
        settings: BridgeSettings,
        address: str,
        is_initiator: bool,
        clusters: Sequence[Cluster],
    ) -> None:
        self.settings = settings
        self.address = address
        self.is_initiator = is_initiator
        self.bridge: Bridge | None = None
        self.failure = ""
        self.since = 0
        self.is_over: asyncio.Future[None] | None = None
        self.forgotten: Callable[[BridgeRecord], None] | None = None
        self._clusters = clusters
        self._told_of: str | None = None
        self._before = dict.fromkeys(COUNTERS, 0)
        self._told = ""

    def begin(self, bridge: Bridge, now: int) -> None:
        """Tell of *bridge* from now on (ms since the epoch)."""
        self.bridge, self.since = bridge, now

    def begun(self, bridge: Bridge) -> None:
        """Hear that the other broker has introduced itself."""
        self._told = ""
        name = "" if bridge.peer is None else bridge.peer.broker_name
        verb = "leads to" if self.is_initiator else "has come from"
        logger.info("bridge %s %s %s, broker %s", self.settings.name, verb, self.address, name)

    def forwards(self, bridge: Bridge) -> None:
        """Hear that messages are forwarded to the other broker from now on."""
        assert bridge.peer is not None
        self._told_of = bridge.peer.broker_url
        for cluster in self._clusters:
            cluster.came(bridge.peer.broker_name, bridge.peer.broker_url)

    def ended(self, bridge: Bridge) -> None:
        """Hear that a bridge is over."""
        if self._told_of is not None:
            for cluster in self._clusters:
                cluster.left(self._told_of)
            self._told_of = None
        if bridge is not self.bridge:
            return
        had_peer = bridge.peer is not None
        self._before = self._counts()
        self.bridge = None
        if had_peer or bridge.failure:
            self.failed(bridge.failure)
        if self.is_over is not None and not self.is_over.done():
            self.is_over.set_result(None)
        if self.forgotten is not None:
            self.forgotten(self)

    def failed(self, reason: str) -> None:
        """Note why there is no bridge; the same reason is logged once."""
        self.failure = reason
        if reason != self._told:
            self._told = reason
            logger.warning("bridge %s to %s: %s", self.settings.name, self.address, reason)

    def _counts(self) -> dict[str, int]:
        counts, bridge = dict(self._before), self.bridge
        if bridge is not None and bridge.forwarder is not None:
            counts["enqueued"] += bridge.forwarder.enqueued
            counts["dequeued"] += bridge.forwarder.dequeued
            counts["bytes"] += bridge.forwarder.bytes
            counts["replayed"] += bridge.forwarder.replayed
        if bridge is not None and bridge.inbound is not None:
            counts["received"] += bridge.inbound.taken
            counts["duplicates"] += bridge.inbound.duplicates
        return counts

    def view(self, now: int) -> dict[str, Any]:
        """Return what the status tells at *now* (ms since the epoch): state, counters, demand."""
        bridge = self.bridge
        peer = None if bridge is None else bridge.peer
        demand = [] if bridge is None or bridge.demand is None else [*bridge.demand.demands]
        return {
            "name": self.settings.name,
            "address": self.address,
            "initiator": self.is_initiator,
            "duplex": self.settings.duplex,
            "state": "connected" if peer is not None else "waiting",
            "broker": None if peer is None else peer.broker_name,
            "brokerId": None if peer is None else peer.broker_id,
            "since": self.since,
            "failure": None if peer is not None else self.failure or None,
            **self._counts(),
            "unconfirmed": sum(each.outstanding for each in demand),
            "lag": 0 if bridge is None or bridge.forwarder is None else bridge.forwarder.lag(now),
            "waiting": sum(each.waiting() for each in demand),
            "stranded": sum(each.stranded() for each in demand),
            "destinations": sorted({str(each.destination) for each in demand}),
            "refused": {} if bridge is None or bridge.demand is None else bridge.demand.refused,
        }
