"""One bridge of a connector, which is dialled again whenever it is lost."""

import asyncio
import random
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Protocol

from lockkeeper.network.bridge import Bridge
from lockkeeper.network.settings import BridgeSettings
from lockkeeper.protocols.cluster import Cluster
from lockkeeper.protocols.settings import ListenerSettings
from lockkeeper.server.networks.conversion import bridge_settings, encryption, with_password
from lockkeeper.server.networks.dialling import dial
from lockkeeper.server.networks.figures import BridgeRecord
from lockkeeper.transport.peer import Peer
from lockkeeper_api.network_connectors import NetworkConnector
from lockkeeper_api.network_uris import BackOff, PeerAddress, Target

SIGNS_OF_LIFE_MS = 10_000
PAUSE_MS_MIN = 10
"""Between two rounds of dialling, also where the delays of a URI are 0."""


class Owner(Protocol):
    """Owner of bridges, which makes and ends them."""

    is_stopping: bool

    @property
    def clusters(self) -> Sequence[Cluster]:
        """Sessions whose clients hear which brokers bridges lead to."""

    def make_bridge(
        self, settings: BridgeSettings, wire: ListenerSettings, record: BridgeRecord, address: str
    ) -> Bridge:
        """Return a bridge of which *record* tells."""

    def make_peer(self, bridge: Bridge) -> Peer:
        """Return the peer of a bridge that dials."""

    async def end_bridge(self, bridge: Bridge, record: BridgeRecord) -> None:
        """End a bridge in words, once what it forwarded is confirmed, or has had its time."""


class Keeper:
    """Keeps one bridge: dials, waits until it is lost, and dials again."""

    def __init__(
        self,
        owner: Owner,
        connector: NetworkConnector,
        target: Target,
        back_off: BackOff,
    ) -> None:
        self._settings = bridge_settings(connector)
        shown = ", ".join(map(str, target.addresses))
        self.record = BridgeRecord(self._settings, shown, True, owner.clusters)
        self.task: asyncio.Task[None] | None = None
        self._owner = owner
        self._connector = connector
        self.target = target
        self._back_off = back_off
        self._delay = back_off.initial_reconnect_delay
        self._is_ending = False

    async def end(self) -> None:
        """Dial no more, and end the bridge that there is."""
        self._is_ending = True
        bridge = self.record.bridge
        if bridge is not None:
            await self._owner.end_bridge(bridge, self.record)
        if self.task is not None:
            self.task.cancel()

    async def keep(self) -> None:
        """Do so for ever."""
        while True:
            begun = time.monotonic()
            for address in self._order():
                if self._owner.is_stopping or self._is_ending:
                    return
                await self._bridge_to(address)
            lived = (time.monotonic() - begun) * 1000
            await asyncio.sleep(max(PAUSE_MS_MIN, self._pause(lived)) / 1000)

    def _order(self) -> list[PeerAddress]:
        addresses = list(self.target.addresses)
        if self.target.is_randomized:
            random.shuffle(addresses)
        return addresses

    def _pause(self, lived: float) -> float:
        """Return for how long to wait, in ms, after a bridge that lived for so long."""
        back_off = self._back_off
        if lived >= back_off.min_connect_time:
            self._delay = back_off.initial_reconnect_delay
            return self._delay
        pause = self._delay
        if back_off.use_exponential_back_off:
            longer = self._delay * back_off.back_off_multiplier
            self._delay = int(min(back_off.max_reconnect_delay, longer))
        return pause

    async def _bridge_to(self, address: PeerAddress) -> None:
        """Bridge to *address* until that ends."""
        record, owner = self.record, self._owner
        try:
            settings = with_password(self._settings, self._connector)
            context = encryption(self._connector) if address.is_encrypted else None
        except OSError as error:
            record.failed(str(error))
            return
        wire = ListenerSettings(
            frame_bytes_max=address.frame_bytes_max,
            inactivity_duration=address.inactivity_duration,
            inactivity_initial_delay=SIGNS_OF_LIFE_MS,
        )
        record.is_over = asyncio.get_running_loop().create_future()
        bridge = owner.make_bridge(settings, wire, record, str(address))
        peer = owner.make_peer(bridge)
        try:
            await dial(address, context, peer)
        except Exception as error:
            # Whatever it is: the bridge is dialled again, and its record tells why it is not there.
            bridge.connection_lost()
            record.failed(str(error) or "no answer in time")
            return
        except asyncio.CancelledError:
            # Of a broker that goes on nothing may be left behind.
            if self._is_ending:
                bridge.connection_lost()
            raise
        with suppress(asyncio.CancelledError):
            await asyncio.shield(record.is_over)
            return
        peer.abort()
        raise asyncio.CancelledError
