"""The bridges of one master: those that it dials, and those that other brokers dialled."""

import asyncio
import itertools
import os
import time
from collections.abc import Collection
from contextlib import suppress
from typing import Any

from lockkeeper.broker.errors import BrokerError
from lockkeeper.message.openwire import BrokerInfo
from lockkeeper.network.bridge import Bridge
from lockkeeper.network.membership import Bridges
from lockkeeper.network.properties import settings_of
from lockkeeper.network.settings import BridgeSettings
from lockkeeper.protocols.cluster import Cluster
from lockkeeper.protocols.handover import HandedOver
from lockkeeper.protocols.settings import ListenerSettings
from lockkeeper.server.engine import Engine
from lockkeeper.server.networks.dialled import Dialled
from lockkeeper.server.networks.figures import BridgeRecord
from lockkeeper.server.networks.keeper import Keeper
from lockkeeper.transport.peer import Peer
from lockkeeper_api.network_connectors import NetworkConnector

STOP_SECONDS = 0.2
DRAIN_SECONDS_MAX = 5.0
"""How long the other broker may take to confirm the last messages of a bridge that is to end."""
DRAIN_LOOK_SECONDS = 0.02


class NetworkConnectors:
    """Keeps bridges; it is the `Acceptor` of all listeners. `records` tell of each of them."""

    def __init__(self, engine: Engine, connectors: list[NetworkConnector]) -> None:
        self.records: list[BridgeRecord] = []
        self.is_stopping = False
        self.clusters: list[Cluster] = []
        self.announced: frozenset[str] = frozenset()
        """Addresses by which this broker itself is found: nobody dials them."""
        self._engine = engine
        self._bridges = Bridges()
        self._numbers = itertools.count(1)
        self._begun = f"{os.getpid()}-{time.time_ns() // 1_000_000}"
        self._wanted = connectors
        self._dialled: list[Dialled] = []
        self._changed = asyncio.Event()
        self._following: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Dial the other brokers, and again whenever one is lost."""
        self._dial()
        self._following = asyncio.get_running_loop().create_task(self._follow())

    def adopt(self, connectors: list[NetworkConnector]) -> None:
        """Go by other connectors; bridges of those that are the same as before go on."""
        self._wanted = connectors
        self._changed.set()

    async def _follow(self) -> None:
        """End the bridges of connectors that are gone, and dial those that are new."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            ending = [each for each in self._dialled if each.connector not in self._wanted]
            # Nobody else may have their client ids before they are gone.
            self._dial(besides={each.connector.name for each in ending})
            keepers = [keeper for each in self._dialled for keeper in self._unwanted(each)]
            for each in ending:
                each.stop_search()
            await asyncio.gather(*(keeper.end() for keeper in keepers))
            for each in self._dialled:
                each.keepers = [keeper for keeper in each.keepers if keeper not in keepers]
            self._dialled = [each for each in self._dialled if each not in ending]
            gone = {keeper.record for keeper in keepers}
            self.records[:] = [each for each in self.records if each not in gone]
            self._dial()

    def _unwanted(self, dialled: Dialled) -> list[Keeper]:
        """Return whose brokers have left the group, or whose connector is gone."""
        if dialled.connector not in self._wanted:
            return dialled.keepers
        targets = dialled.targets(self.announced)
        return [keeper for keeper in dialled.keepers if keeper.target not in targets]

    def _dial(self, besides: Collection[str] = ()) -> None:
        """Dial what is new, but for connectors whose names are in use."""
        loop = asyncio.get_running_loop()
        known = [each.connector for each in self._dialled]
        for connector in self._wanted:
            if connector in known or connector.name in besides:
                continue
            self._dialled.append(Dialled(connector, self._changed))
        for dialled in self._dialled:
            if dialled.connector.name in besides:
                continue
            dialled.begin_search()
            kept = [keeper.target for keeper in dialled.keepers]
            for target in dialled.targets(self.announced):
                if target not in kept:
                    keeper = Keeper(self, dialled.connector, target, dialled.uri.back_off)
                    dialled.keepers.append(keeper)
                    self.records.append(keeper.record)
                    keeper.task = loop.create_task(keeper.keep())

    def abandon(self) -> None:
        """Dial nobody any more."""
        tasks = [keeper.task for each in self._dialled for keeper in each.keepers]
        for task in (self._following, *tasks):
            if task is not None:
                task.cancel()
        for each in self._dialled:
            each.stop_search()

    async def stop(self) -> None:
        """End all bridges in words, and dial nobody any more."""
        self.is_stopping = True
        # Clients learn of the end of this broker by other ways.
        self.clusters.clear()
        for record in self.records:
            if record.bridge is not None:
                record.bridge.stop()
        self._engine.wake()
        await asyncio.sleep(STOP_SECONDS if self.records else 0)
        self.abandon()

    def view(self) -> list[dict[str, Any]]:
        """Return what the status tells of each bridge."""
        return [record.view(self._engine.now) for record in self.records]

    # What keepers need

    def make_bridge(
        self, settings: BridgeSettings, wire: ListenerSettings, record: BridgeRecord, address: str
    ) -> Bridge:
        """Return a bridge of which *record* tells."""
        broker = self._engine.broker
        identifier = f"ID:{broker.name}-{self._begun}-{next(self._numbers)}:1"
        bridge = Bridge(
            broker, self._bridges, settings, wire, identifier, address, record, self._own_urls()
        )
        record.begin(bridge, self._engine.now)
        return bridge

    def _own_urls(self) -> str:
        """Return where clients reach this broker, as far as a listener says."""
        return next((each.own for each in self.clusters if each.own), "")

    def make_peer(self, bridge: Bridge) -> Peer:
        """Return the peer of a bridge that dials."""
        return Peer(self._engine, bridge, self._engine.stamp())

    async def end_bridge(self, bridge: Bridge, record: BridgeRecord) -> None:
        """End a bridge in words, once what it forwarded is confirmed, or has had its time."""
        self._engine.stamp()
        bridge.drain()
        self._engine.wake()
        with suppress(TimeoutError):
            async with asyncio.timeout(DRAIN_SECONDS_MAX):
                while not bridge.is_drained:
                    await asyncio.sleep(DRAIN_LOOK_SECONDS)
        if record.bridge is bridge:
            bridge.stop()
            self._engine.wake()
            await asyncio.sleep(STOP_SECONDS)

    # What other brokers dialled; see `Acceptor`

    def client_id(self, peer: BrokerInfo, client_id: str) -> str:
        """See `Acceptor.client_id`: durable subscriptions of a duplex bridge are ours.

        Raises BrokerError for settings that cannot be read.
        """
        if not peer.duplex_connection:
            return client_id
        try:
            settings = settings_of(peer.network_properties)
        except ValueError as error:
            raise BrokerError(str(error)) from error
        parts = (settings.name, peer.broker_name or "", "inbound", self._engine.broker.name)
        return settings.client_id_token.join(parts)

    def inform(self, cluster: Cluster) -> None:
        """See `Acceptor.inform`."""
        self.clusters.append(cluster)

    def accept(self, handed_over: HandedOver) -> None:
        """See `Acceptor.accept`."""
        settings = settings_of(handed_over.peer.network_properties)
        connection, agreement = handed_over.connection, handed_over.agreement
        record = BridgeRecord(settings, connection.address, False, self.clusters)
        wire = ListenerSettings(inactivity_duration=agreement.inactivity_duration)
        bridge = self.make_bridge(settings, wire, record, connection.address)
        record.forgotten = self.records.remove
        self.records.append(record)
        if connection.sender is not None:
            connection.sender.hand_over(bridge)
        bridge.take_over(handed_over)
