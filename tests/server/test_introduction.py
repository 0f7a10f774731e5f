"""What a client learns of the brokers it may use, when it connects."""

from lockkeeper.broker.core import Broker
from lockkeeper.broker.policies.policy import PolicyMap
from lockkeeper.broker.settings import BrokerSettings
from lockkeeper.message import openwire
from lockkeeper.protocols.openwire.codec import offer
from lockkeeper.protocols.openwire.frames import framed
from lockkeeper.protocols.openwire.session import OpenWireSession
from lockkeeper.server.settings import listener_settings
from lockkeeper.store.memory import MemoryStore
from lockkeeper_api.broker import Listener

URLS = ["tcp://orders-0.orders:61616", "tcp://orders-1.orders:61616"]


def introduction(listener: Listener, manageable: bool) -> openwire.ConnectionControl | None:
    """Connect to a listener; return how the broker introduces itself."""
    broker = Broker(MemoryStore(), "orders", "ID:1", PolicyMap(), BrokerSettings(), 1)
    broker.recover()
    settings = listener_settings(listener)
    session = OpenWireSession(broker, settings, "tcp://client")
    info = openwire.ConnectionInfo(
        connection_id=openwire.ConnectionId("ID:client"), manageable=manageable
    )
    session.receive_data(framed(openwire.encode(offer(settings))))
    session.data_to_send()
    session.receive_data(framed(openwire.encode(info)))
    commands = [openwire.decode(bytes(piece), 4)[0] for piece in session.data_to_send()]
    found = [each for each in commands if isinstance(each, openwire.ConnectionControl)]
    return found[0] if found else None


def test_a_client_learns_where_the_replicas_are() -> None:
    told = introduction(Listener(name="openwire", advertised_urls=URLS), manageable=True)
    assert told is not None
    assert told.connected_brokers == ",".join(URLS)


def test_nothing_is_told_that_is_not_advertised() -> None:
    told = introduction(Listener(name="openwire"), manageable=True)
    assert told is not None
    assert not told.connected_brokers


def test_only_those_are_told_that_can_be_managed() -> None:
    assert introduction(Listener(name="openwire", advertised_urls=URLS), manageable=False) is None
