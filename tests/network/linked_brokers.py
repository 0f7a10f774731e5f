"""Broker cores linked by bridges, without a socket: bytes go from one to the other by hand."""

from itertools import count
from typing import Any, cast

from lockkeeper.broker.connections import Connection
from lockkeeper.broker.core import Broker
from lockkeeper.broker.outputs import Delivery
from lockkeeper.broker.policies.policy import PolicyMap
from lockkeeper.broker.settings import BrokerSettings, MemoryUsage, SystemUsage
from lockkeeper.broker.subscriptions.consumer import Consumer
from lockkeeper.broker.subscriptions.request import ConsumeRequest
from lockkeeper.message.destination import Destination, parse_destination
from lockkeeper.message.ids import MessageId, ProducerId
from lockkeeper.message.openwire import (
    AckType,
    ActiveMQTextMessage,
    BrokerInfo,
    ConsumerId,
)
from lockkeeper.message.rewrite import decoded, encoded
from lockkeeper.network.bridge import Bridge
from lockkeeper.network.membership import Bridges
from lockkeeper.network.properties import settings_of
from lockkeeper.network.settings import BridgeSettings
from lockkeeper.protocols.cluster import Cluster
from lockkeeper.protocols.handover import HandedOver
from lockkeeper.protocols.openwire.session import OpenWireSession
from lockkeeper.protocols.session import Session
from lockkeeper.protocols.settings import ListenerSettings
from lockkeeper.store.base import Store
from lockkeeper.store.memory import MemoryStore

NOW = 1_700_000_000_000
SETTINGS = BrokerSettings(system_usage=SystemUsage(MemoryUsage(1 << 28)))
ROUNDS_MAX = 200
PIECE_BYTES = 1 << 18


class Silent:
    """Hears of bridges; `ends` counts those that are over."""

    def __init__(self) -> None:
        self.ends = 0

    def begun(self, bridge: Bridge) -> None:
        """Hear nothing."""

    def forwards(self, bridge: Bridge) -> None:
        """Hear nothing."""

    def ended(self, bridge: Bridge) -> None:
        """Count."""
        self.ends += 1


class End:
    """One end of a link: the sender of its session's connection, and of no socket."""

    def __init__(self, node: "Node", session: Session) -> None:
        self.node = node
        self.session = session
        session.connection.sender = self

    def hand_over(self, session: Session) -> None:
        self.session = session

    def flush(self) -> None:
        """Leave what there is to say for `Link.pump`."""

    def abort(self) -> None:
        self.session.closing = True

    def ended(self) -> None:
        """Nobody waits."""


class Node:
    """A broker with its bridges and its clients."""

    def __init__(
        self,
        name: str,
        store: Store | None = None,
        policies: PolicyMap | None = None,
        settings: BrokerSettings = SETTINGS,
        life: str = "",
    ) -> None:
        """*life* is the end of the id that the process makes for itself."""
        self.store = store or MemoryStore()
        own_id = f"ID:{name}{life}"
        self.broker = Broker(self.store, name, own_id, policies or PolicyMap(), settings, NOW)
        past = self.broker.recover()
        self.store.begin_term(past.epoch + 1, NOW, self.broker.identity, name)
        self.bridges = Bridges()
        self.accepted: list[Bridge] = []
        self.listener = Silent()
        self.now = NOW
        self._numbers = count(1)

    def later(self, milliseconds: int) -> None:
        """Let time pass."""
        self.now += milliseconds
        self.turn()

    def turn(self) -> None:
        """Dispatch, and have written what waits."""
        self.broker.tick(self.now)
        self.broker.take_dirty()
        self.broker.settle(self.store.flush())

    # As the acceptor of its listener

    def client_id(self, peer: BrokerInfo, client_id: str) -> str:
        if not peer.duplex_connection:
            return client_id
        name = settings_of(peer.network_properties).name
        return f"{name}_{peer.broker_name}_inbound_{self.broker.name}"

    def inform(self, cluster: Cluster) -> None:
        pass

    def accept(self, handed_over: HandedOver) -> None:
        settings = settings_of(handed_over.peer.network_properties)
        bridge = self.bridge(settings, f"ID:accepted-{self.broker.name}-{next(self._numbers)}")
        self.accepted.append(bridge)
        sender = handed_over.connection.sender
        assert sender is not None
        sender.hand_over(bridge)
        bridge.take_over(handed_over)

    def bridge(self, settings: BridgeSettings, identifier: str) -> Bridge:
        return Bridge(
            self.broker, self.bridges, settings, ListenerSettings(), identifier, "tcp://peer:1",
            self.listener,
        )  # fmt: skip

    # Clients

    def client(self, name: str = "") -> "Client":
        return Client(self, name or f"client-{next(self._numbers)}")


class Client:
    """A client of one broker."""

    def __init__(self, node: Node, name: str) -> None:
        self.node = node
        self.name = f"{node.broker.name}-{name}"
        self.connection: Connection = node.broker.open_connection("tcp://client:1")
        node.broker.connect(self.connection, self.name, self.name)
        self._numbers = count(1)
        self._consumers: dict[object, Consumer] = {}

    def send(self, to: str, text: str, **fields: Any) -> None:
        broker = self.node.broker
        producer = ProducerId(self.name, 1, 1)
        number, sequence = next(self._numbers), next(broker.sequences)
        message_id = MessageId(producer, number, sequence)
        message = encoded(
            ActiveMQTextMessage(
                producer_id=producer,
                destination=parse_destination(to),
                content=len(text).to_bytes(4, "big") + text.encode(),
                **{"persistent": True, "message_id": message_id, **fields},
            ),
            sequence,
        )
        broker.send(self.connection, message, None)
        self.node.turn()

    def consume(self, source: str | Destination, **options: Any) -> Consumer:
        number = next(self._numbers)
        destination = source if isinstance(source, Destination) else parse_destination(source)
        request = ConsumeRequest(
            ConsumerId(self.name, 1, number), destination, 1000, tag=number, **options
        )
        consumer = self.node.broker.subscriptions.subscribe(self.connection, request, None)
        self._consumers[number] = consumer
        self.node.turn()
        return consumer

    def close(self, consumer: Consumer) -> None:
        self.node.broker.subscriptions.unsubscribe(consumer, -1)
        self.node.turn()

    def take(self) -> list[str]:
        """Return the texts that came, each acknowledged."""
        return [text for text, _ in self.take_with_paths()]

    def take_with_paths(self) -> list[tuple[str, list[str]]]:
        """Return the texts that came with the brokers that they have left."""
        self.node.turn()
        told, self.connection.outbox = self.connection.outbox, []
        found = []
        for output in told:
            if type(output) is not tuple:
                continue
            tag, references = cast("Delivery", output)
            for reference in list(references):
                fields = decoded(reference.loaded)
                path = [each.value for each in fields.broker_path or ()]
                found.append(((fields.content or b"    ")[4:].decode(), path))
                self.node.broker.acknowledge(
                    self._consumers[cast("int", tag)],
                    AckType.INDIVIDUAL,
                    reference.loaded.sequence,
                    1,
                    None,
                )
        self.node.turn()
        return found


class Link:
    """A connection of two brokers, of which the first one dials; bytes pass by `pump`."""

    _numbers = count(1)

    def __init__(self, near: Node, far: Node, settings: BridgeSettings | None = None) -> None:
        self.near, self.far = near, far
        self.bridge = near.bridge(settings or BridgeSettings(), f"ID:link-{next(self._numbers)}")
        listener = ListenerSettings(acceptor=far)
        self.ends = (
            End(near, self.bridge),
            End(far, OpenWireSession(far.broker, listener, "tcp://near:1")),
        )
        self._unread = [b"", b""]
        for end in self.ends:
            end.session.start()
        self.pump()

    def pump(self, holds_back: int | None = None) -> None:
        """Pass bytes on until nobody says anything; not those of the end *holds_back*."""
        for _ in range(ROUNDS_MAX):
            if not self.step(holds_back):
                return
        raise AssertionError("the brokers never stop talking")

    def step(self, holds_back: int | None = None) -> bool:
        """Pass on what each end has to say now; returns whether there was anything.

        It is read in pieces, and not at all while there is no room for it.
        """
        is_busy = False
        for number, (end, other) in enumerate((self.ends, self.ends[::-1])):
            end.node.turn()
            if number == holds_back or end.session.closing:
                continue
            data = self._unread[number] + b"".join(end.session.data_to_send())
            piece = b"" if other.session.connection.stalled else data[:PIECE_BYTES]
            self._unread[number] = data[len(piece) :]
            if piece:
                is_busy = True
                other.session.receive_data(piece, 1 << 30)
        return is_busy

    def cut(self) -> None:
        """Lose the connection."""
        for end in self.ends:
            end.session.connection_lost()
            end.node.turn()
