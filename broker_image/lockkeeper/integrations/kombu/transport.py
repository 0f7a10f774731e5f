"""The transport: what `kombu.Connection` drives, and what its event loop watches."""

from importlib.metadata import PackageNotFoundError, version
from typing import Any

from kombu.transport import base

from lockkeeper.integrations.kombu import errors
from lockkeeper.integrations.kombu.address import masked, target_of
from lockkeeper.integrations.kombu.channel import Channel
from lockkeeper.integrations.kombu.connection import Connection
from lockkeeper.integrations.kombu.exchanges import TYPES
from lockkeeper.integrations.kombu.registering import PREFIX

SCHEDULER = "broker_scheduler"
CHANNELS_MAX = 65_535


class Transport(base.Transport):  # type: ignore[misc]
    """OpenWire for kombu.

    Transport options: `broker_scheduler` (True): tell the broker's scheduler when tasks with an
    `eta` are due; a broker without one delivers them at once, and workers wait with them.
    """

    can_parse_url = True
    default_port = 61616
    # What Celery has for this type alone, gossip and mingle, needs no more than AMQP's exchanges.
    driver_type = "amqp"
    driver_name = "lockkeeper"
    connection_errors = errors.CONNECTION_ERRORS
    channel_errors = errors.CHANNEL_ERRORS
    recoverable_connection_errors = errors.RECOVERABLE_CONNECTION_ERRORS
    recoverable_channel_errors = errors.RECOVERABLE_CHANNEL_ERRORS
    implements = base.Transport.implements.extend(
        asynchronous=True,
        exchange_type=TYPES,
        heartbeats=False,
    )

    def driver_version(self) -> str:
        """Return the version of the client."""
        try:
            return version("lockkeeper-mq")
        except PackageNotFoundError:
            return "unknown"

    @property
    def default_connection_params(self) -> dict[str, Any]:
        """The place of a broker that nobody has named."""
        return {"hostname": "localhost", "port": self.default_port}

    def as_uri(self, uri: str, include_password: bool = False, mask: str = "**") -> str:
        """Return a URI that may be shown."""
        whole = f"{self.client.uri_prefix or PREFIX}+{uri}"
        return whole if include_password else masked(whole, mask)

    # Connections

    def establish_connection(self) -> Connection:
        """Return an open connection. Raises what `lockkeeper.client.connect` raises."""
        return Connection(self.client, target_of(self.client), self.client.connect_timeout or None)

    def close_connection(self, connection: Connection) -> None:
        """Close a connection with its channels."""
        connection.close()

    def verify_connection(self, connection: Connection) -> bool:
        """Tell whether a connection is of use."""
        return connection.connected

    def _collect(self, connection: Connection | None) -> None:
        """Close what is left of a connection; in a forked process nothing is."""
        if connection is not None:
            connection.close()

    # Channels

    def create_channel(self, connection: Connection) -> Channel:
        """Return a new channel."""
        used = {channel.channel_id for channel in connection.channels}
        number = next(each for each in range(1, CHANNELS_MAX) if each not in used)
        options = connection.client.transport_options or {}
        channel = Channel(connection, number, is_scheduled=bool(options.get(SCHEDULER, True)))
        connection.channels.append(channel)
        return channel

    def close_channel(self, channel: Channel) -> None:
        """Close a channel; what it has in hand goes back to the broker."""
        channel.close()

    # Events

    def drain_events(self, connection: Connection, timeout: float | None = None) -> None:
        """Hand one message over. Raises TimeoutError (`socket.timeout`) when none comes."""
        connection.drain_events(timeout=timeout)

    def register_with_event_loop(self, connection: Connection, loop: Any) -> None:
        """Have kombu's event loop call when something has arrived."""
        loop.add_reader(connection.fileno(), self.on_readable, connection, loop)

    def unregister_from_event_loop(self, connection: Connection, loop: Any) -> None:
        """Let kombu's event loop forget the connection."""
        loop.remove_reader(connection.fileno())


class TlsTransport(Transport):
    """The same over TLS, where kombu has parsed the URL itself."""

    def establish_connection(self) -> Connection:
        """See `Transport`."""
        target = target_of(self.client, encrypted=True)
        return Connection(self.client, target, self.client.connect_timeout or None)
