"""Settings of bridges from the resource, with the secrets that its files hold."""

import ssl
from collections.abc import Iterable
from pathlib import Path

from lockkeeper.message.destination import Destination, Kind
from lockkeeper.network.settings import BridgeSettings, Included
from lockkeeper.server.errors import CannotRunError
from lockkeeper_api.network_connectors import NetworkConnector, NetworkDestination, NetworkTls

# They are called the same in the resource, and need no other form.
_SAME = (
    *("name", "duplex", "user_name", "dynamic_only", "static_bridge", "always_sync_send"),
    *("use_compression", "sync_durable_subs"),
    *("conduit_subscriptions", "conduit_network_queue_subscriptions", "bridge_temp_destinations"),
    *("decrease_network_consumer_priority", "consumer_priority_base", "destination_filter"),
    *("prefetch_size", "advisory_prefetch_size", "advisory_ack_percentage"),
    *("suppress_duplicate_queue_subscriptions", "suppress_duplicate_topic_subscriptions"),
)


def bridge_settings(connector: NetworkConnector) -> BridgeSettings:
    """Return the settings of a connector's bridges. Raises CannotRunError for a missing file."""
    ttl = 1 if connector.network_ttl is None else connector.network_ttl
    message, consumer = connector.message_ttl, connector.consumer_ttl
    return BridgeSettings(
        **{name: getattr(connector, name) for name in _SAME},
        password=_password(connector),
        message_ttl=ttl if message is None else message,
        consumer_ttl=ttl if consumer is None else consumer,
        excluded=_included(connector.excluded_destinations),
        dynamically_included=_included(connector.dynamically_included_destinations),
        statically_included=_included(connector.statically_included_destinations),
    )


def encryption(connector: NetworkConnector) -> ssl.SSLContext:
    """Return what encrypts a connector's connections. Raises CannotRunError for its files."""
    tls = connector.tls or NetworkTls()
    where = f"networkConnectors, {connector.name}: tls"
    try:
        context = ssl.create_default_context(cafile=tls.ca_file)
    except (OSError, ValueError) as error:
        raise CannotRunError(f"{where}.caFile: {tls.ca_file}: {error}") from error
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if tls.certificate_file is not None:
        try:
            context.load_cert_chain(tls.certificate_file, tls.key_file)
        except (OSError, ValueError) as error:
            name = f"{where}.certificateFile: {tls.certificate_file}"
            raise CannotRunError(f"{name}: {error}") from error
    return context


def _password(connector: NetworkConnector) -> str | None:
    if connector.password_file is None:
        return None
    try:
        return Path(connector.password_file).read_text("utf-8").removesuffix("\n")
    except (OSError, UnicodeDecodeError) as error:
        where = f"networkConnectors, {connector.name}: passwordFile"
        raise CannotRunError(f"{where}: {error}") from error


def _included(destinations: Iterable[NetworkDestination]) -> tuple[Included, ...]:
    return tuple(
        Included(
            Destination(Kind.QUEUE if each.kind == "Queue" else Kind.TOPIC, each.name),
            each.force_durable,
        )
        for each in destinations
    )
