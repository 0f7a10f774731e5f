"""A broker core with one OpenWire session, bytes in and bytes out."""

import time

from largest_frames import NAME

from lockkeeper.broker.access.authenticator import Verdict
from lockkeeper.broker.core import Broker
from lockkeeper.broker.policies.policy import PolicyMap
from lockkeeper.broker.settings import BrokerSettings, MemoryUsage, SystemUsage
from lockkeeper.message import openwire
from lockkeeper.message.openwire import ConnectionId
from lockkeeper.protocols.openwire.codec import offer
from lockkeeper.protocols.openwire.frames import framed
from lockkeeper.protocols.openwire.session import OpenWireSession
from lockkeeper.protocols.settings import ListenerSettings
from lockkeeper.store.memory import MemoryStore

NOW = 1_700_000_000_000
SETTINGS = BrokerSettings(system_usage=SystemUsage(MemoryUsage(1 << 30)))


class Nobody:
    """Never tells whether somebody may connect."""

    def check_password(
        self, user: str | None, password: str | None, tell: Verdict, address: str = ""
    ) -> None:
        """Leave the client waiting."""


class Served:
    """A broker with one connection."""

    def __init__(self, is_guarded: bool = False, settings: BrokerSettings = SETTINGS) -> None:
        keeper = Nobody() if is_guarded else None
        self.broker = Broker(MemoryStore(), "b", "ID:b", PolicyMap(), settings, NOW, keeper)
        self.broker.recover()
        self.session = OpenWireSession(self.broker, ListenerSettings(), "tcp://10.0.0.1:1")

    def greeted(self) -> "Served":
        self.tell(offer(ListenerSettings()))
        return self

    def introduced(self) -> "Served":
        self.greeted().tell(openwire.ConnectionInfo(connection_id=ConnectionId(NAME)))
        return self

    def tell(self, command: openwire.Structure) -> None:
        self.take(openwire.encode(command))

    def take(self, raw: bytes) -> float:
        """Take a frame; return what it cost, its share of the turn included, in CPU seconds."""
        frame = framed(raw)
        began = time.process_time()
        self.session.receive_data(frame)
        self.broker.tick(NOW)
        self.session.data_to_send()
        return time.process_time() - began
