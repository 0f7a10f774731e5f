"""The flight recorder's events of connections, bridges, consumers and producers.

What peers control is bounded: texts are cut, and events beyond a rate are only counted. Lines
wait here until something is written anyway.
"""

from collections import deque
from collections.abc import Iterable
from typing import Any

from lockkeeper.broker.advisories.names import is_advisory
from lockkeeper.broker.connections import Connection, NetworkPeer
from lockkeeper.broker.core import Broker
from lockkeeper.broker.subscriptions.consumer import Consumer, Peer
from lockkeeper.message.destination import Destination

TEXT_CHARACTERS_MAX = 256
CUT = "…"
EVENTS_AT_ONCE_MAX = 1_000
"""So many events may come at once, and so many may wait to be written."""
EVENTS_PER_SECOND_MAX = 20
"""How fast the right to another event comes back."""


class ClientRecorder:
    """Listens to the core and keeps what there is to write; see `ClientListener`."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._waiting: deque[dict[str, Any]] = deque()
        self._left_out = 0
        self._allowance = float(EVENTS_AT_ONCE_MAX)
        self._allowed_at = broker.steady
        self._slow: dict[Consumer, tuple[int, int]] = {}
        self._told: set[Consumer] = set()
        self._counted: dict[Connection, dict[str, object]] = {}

    def take_events(self, most: int = EVENTS_AT_ONCE_MAX) -> list[dict[str, Any]]:
        """Return what is to be written, the oldest *most* events, and forget them."""
        if not self._waiting and not self._left_out:  # Asked before each write, and mostly so.
            return []
        taken = [self._waiting.popleft() for _ in range(min(most, len(self._waiting)))]
        if self._left_out and not self._waiting:
            taken.append({"at": self._broker.now, "event": "leftOut", "count": self._left_out})
            self._left_out = 0
        return taken

    def connected(self, connection: Connection) -> None:
        """See `ClientListener.connected`."""
        self._add_event("connectionOpened", **_connection(connection), address=connection.address)

    def disconnected(self, connection: Connection) -> None:
        """See `ClientListener.disconnected`."""
        self._counted.pop(connection, None)
        self._add_event("connectionClosed", **_connection(connection), **_figures(connection))

    def bridge_started(self, connection: Connection, peer: NetworkPeer) -> None:
        """See `ClientListener.bridge_started`."""
        self._add_event(
            "bridgeStarted",
            **_connection(connection),
            brokerId=self._broker.broker_id,
            bridge=peer.connector,
            peer=peer.broker_name or None,
            peerId=peer.broker_id,
            direction=_direction(peer),
        )

    def consumer_added(self, consumer: Consumer) -> None:
        """See `ClientListener.consumer_added`."""
        if is_advisory(consumer.destination):
            return
        self._add_event(
            "consumerOpened",
            **_consumer(consumer),
            selector=consumer.request.selector,
            prefetch=consumer.prefetch,
            subscription=consumer.subscription_name,
            browser=consumer.browser or None,
        )

    def consumer_removed(self, consumer: Consumer) -> None:
        """See `ClientListener.consumer_removed`."""
        self._slow.pop(consumer, None)
        self._told.discard(consumer)
        if not is_advisory(consumer.destination):
            self._add_event("consumerClosed", **_consumer(consumer), delivered=consumer.delivered)

    def producer_added(
        self, connection: Connection, identifier: object, destination: Destination | None
    ) -> None:
        """See `ClientListener.producer_added`."""
        self._add_event("producerOpened", **_producer(connection, identifier, destination))

    def producer_removed(
        self, connection: Connection, identifier: object, destination: Destination | None
    ) -> None:
        """See `ClientListener.producer_removed`."""
        self._add_event("producerClosed", **_producer(connection, identifier, destination))

    def note_bridges(self, connections: Iterable[Connection]) -> None:
        """Tell how many messages have gone over bridges, of those where that has changed."""
        for connection in connections:
            figures = _figures(connection)
            if figures and self._counted.get(connection) != figures:
                self._counted[connection] = figures
                self._add_event("bridgeCounted", **_connection(connection), **figures)

    def note_slow_consumers(self, consumers: list[Consumer]) -> None:
        """Tell of consumers that are slow, once until they move.

        Slow is whose window was full while messages waited at the last look, is so now, and has
        neither got nor acknowledged anything in between.
        """
        before, self._slow = self._slow, {}
        for consumer in consumers:
            if not consumer.is_slow() or is_advisory(consumer.destination):
                continue
            held = len(consumer.dispatched)
            progress = self._slow[consumer] = (consumer.delivered, held)
            if before.get(consumer) != progress:
                self._told.discard(consumer)
            elif consumer not in self._told:
                self._told.add(consumer)
                self._add_event("slowConsumer", **_consumer(consumer), held=held)
        self._told &= self._slow.keys()

    def _add_event(self, event: str, **details: object) -> None:
        now, steady = self._broker.now, self._broker.steady
        gained = (steady - self._allowed_at) * EVENTS_PER_SECOND_MAX / 1000
        self._allowance = min(EVENTS_AT_ONCE_MAX, self._allowance + gained)
        self._allowed_at = steady
        if self._allowance < 1 or len(self._waiting) >= EVENTS_AT_ONCE_MAX:
            self._left_out += 1
            return
        self._allowance -= 1
        told = {name: _cut(value) for name, value in details.items() if value is not None}
        self._waiting.append({"at": now, "event": event, **told})


def _connection(connection: Peer) -> dict[str, object]:
    return {
        "connection": connection.identifier,
        "clientId": connection.client_id or None,
        "user": connection.user_name or None,
    }


def _figures(connection: Connection) -> dict[str, object]:
    """Return how many messages have gone over a bridge, each way; nothing of a client."""
    peer = connection.network
    return {} if peer is None else dict(zip(("forwarded", "received"), peer.figures(), strict=True))


def _direction(peer: NetworkPeer) -> str:
    """Return which way messages go over a bridge, seen from here."""
    if not peer.is_forwarded_to:
        return "in"
    return "both" if peer.forwards else "out"


def _consumer(consumer: Consumer) -> dict[str, object]:
    return {
        **_connection(consumer.connection),
        "consumer": str(consumer.identifier),
        "destination": str(consumer.destination),
    }


def _producer(
    connection: Connection, identifier: object, destination: Destination | None
) -> dict[str, object]:
    return {
        **_connection(connection),
        "producer": str(identifier),
        "destination": None if destination is None else str(destination),
    }


def _cut(value: object) -> object:
    """Return *value*, a text with no more characters than may be."""
    if not isinstance(value, str) or len(value) <= TEXT_CHARACTERS_MAX:
        return value
    return value[: TEXT_CHARACTERS_MAX - 1] + CUT
