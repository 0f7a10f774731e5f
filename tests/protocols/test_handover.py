"""A connection of another broker is left to a bridge, once it has logged in."""

from largest_frames import NAME

from lockkeeper.broker.access.authenticator import Verdict
from lockkeeper.broker.access.rights import Rights
from lockkeeper.broker.core import Broker
from lockkeeper.broker.policies.policy import PolicyMap
from lockkeeper.broker.settings import BrokerSettings, MemoryUsage, SystemUsage
from lockkeeper.message import openwire
from lockkeeper.message.openwire import BrokerId, BrokerInfo, ConnectionId, ConnectionInfo
from lockkeeper.protocols.cluster import Cluster
from lockkeeper.protocols.handover import HandedOver
from lockkeeper.protocols.openwire.codec import offer
from lockkeeper.protocols.openwire.frames import framed
from lockkeeper.protocols.openwire.session import OpenWireSession
from lockkeeper.protocols.settings import ListenerSettings
from lockkeeper.store.memory import MemoryStore

NOW = 1_700_000_000_000
SETTINGS = BrokerSettings(system_usage=SystemUsage(MemoryUsage(1 << 30)))
INFO = BrokerInfo(broker_id=BrokerId("ID:other"), broker_name="other", network_connection=True)
LOGIN = ConnectionInfo(connection_id=ConnectionId(NAME), client_id="NC_other_outbound")
REST = framed(openwire.encode(openwire.KeepAliveInfo()))


class Taking:
    """An acceptor that keeps what it is given."""

    def __init__(self) -> None:
        self.taken: list[HandedOver] = []
        self.informed: list[Cluster] = []

    def inform(self, cluster: Cluster) -> None:
        self.informed.append(cluster)

    def client_id(self, peer: BrokerInfo, client_id: str) -> str:
        return f"{client_id}!"

    def accept(self, handed_over: HandedOver) -> None:
        self.taken.append(handed_over)


class Patient:
    """Tells whether somebody may connect when the test says so."""

    def __init__(self) -> None:
        self.tell: Verdict | None = None

    def check_password(
        self, user: str | None, password: str | None, tell: Verdict, address: str = ""
    ) -> None:
        self.tell = tell


class Reached:
    """A broker with one connection."""

    def __init__(self, keeper: Patient | None = None, accepts: bool = True) -> None:
        self.acceptor = Taking()
        self.broker = Broker(MemoryStore(), "b", "ID:b", PolicyMap(), SETTINGS, NOW, keeper)
        self.broker.recover()
        settings = ListenerSettings(acceptor=self.acceptor if accepts else None)
        self.session = OpenWireSession(self.broker, settings, "tcp://10.0.0.1:1")
        self.tell(offer(ListenerSettings()))

    def tell(self, *commands: openwire.Structure, rest: bytes = b"") -> None:
        frames = b"".join(framed(openwire.encode(command)) for command in commands)
        self.session.receive_data(frames + rest)


def test_the_rest_of_what_came_goes_along() -> None:
    reached = Reached()
    reached.tell(INFO, LOGIN, rest=REST)
    (taken,) = reached.acceptor.taken
    assert taken.peer.broker_name == "other"
    assert taken.rest == REST
    assert taken.connection.identifier == NAME
    assert taken.connection.client_id == "NC_other_outbound!"


def test_what_was_sent_is_not_sent_again() -> None:
    reached = Reached()
    reached.session.data_to_send()
    reached.tell(INFO, LOGIN)
    (taken,) = reached.acceptor.taken
    assert taken.pieces == []
    assert reached.session.data_to_send() == []


def test_what_was_to_be_sent_goes_along() -> None:
    reached = Reached()
    reached.tell(INFO, LOGIN)
    (taken,) = reached.acceptor.taken
    info, _ = openwire.decode(bytes(taken.pieces[-1])[4:])
    assert isinstance(info, BrokerInfo)


def test_a_password_comes_first() -> None:
    keeper = Patient()
    reached = Reached(keeper)
    reached.tell(INFO, LOGIN, rest=REST)
    assert reached.acceptor.taken == []
    assert keeper.tell is not None
    keeper.tell(Rights("bridge", frozenset(), None))
    (taken,) = reached.acceptor.taken
    assert taken.rest == REST
    assert taken.connection.rights is not None


def test_a_wrong_password_hands_nothing_over() -> None:
    keeper = Patient()
    reached = Reached(keeper)
    reached.tell(INFO, LOGIN, rest=REST)
    assert keeper.tell is not None
    keeper.tell(None)
    assert reached.acceptor.taken == []


def test_a_bridge_that_comes_again_replaces_itself() -> None:
    reached = Reached()
    reached.tell(INFO, LOGIN)
    again = OpenWireSession(
        reached.broker, ListenerSettings(acceptor=reached.acceptor), "tcp://10.0.0.1:2"
    )
    again.receive_data(framed(openwire.encode(offer(ListenerSettings()))))
    other = ConnectionInfo(connection_id=ConnectionId("another"), client_id=LOGIN.client_id)
    for command in (INFO, other):
        again.receive_data(framed(openwire.encode(command)))
    first, second = reached.acceptor.taken
    assert first.connection.is_ended
    assert not second.connection.is_ended


def test_who_is_no_broker_is_a_client() -> None:
    reached = Reached()
    reached.tell(LOGIN, rest=REST)
    assert reached.acceptor.taken == []
    assert reached.session.is_open


def test_without_an_acceptor_a_broker_is_a_client() -> None:
    reached = Reached(accepts=False)
    reached.tell(INFO, LOGIN)
    assert reached.session.is_open
    assert reached.broker.connections[NAME].client_id == "NC_other_outbound"
