"""Settings of bridges from the resource, with the secrets that its files hold.

Files are read whenever a bridge is dialled: those of a pod come and change while it runs.
"""

import ssl
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from lockkeeper.message.destination import Destination, Kind
from lockkeeper.network.settings import BridgeSettings, Included
from lockkeeper.transport.tls import no_password
from lockkeeper_api.network_connectors import NetworkConnector, NetworkDestination, NetworkTls

# They are called the same in the resource, and need no other form.
_SAME = (
    *("name", "duplex", "user_name", "dynamic_only", "static_bridge", "always_sync_send"),
    *("use_compression", "sync_durable_subs", "use_virtual_dest_subs"),
    *("conduit_subscriptions", "conduit_network_queue_subscriptions", "bridge_temp_destinations"),
    *("decrease_network_consumer_priority", "consumer_priority_base", "destination_filter"),
    *("prefetch_size", "advisory_prefetch_size", "advisory_ack_percentage"),
    *("suppress_duplicate_queue_subscriptions", "suppress_duplicate_topic_subscriptions"),
)


def bridge_settings(connector: NetworkConnector) -> BridgeSettings:
    """Return the settings of a connector's bridges, without the password."""
    ttl = 1 if connector.network_ttl is None else connector.network_ttl
    message, consumer = connector.message_ttl, connector.consumer_ttl
    return BridgeSettings(
        **{name: getattr(connector, name) for name in _SAME},
        message_ttl=ttl if message is None else message,
        consumer_ttl=ttl if consumer is None else consumer,
        excluded=_included(connector.excluded_destinations),
        dynamically_included=_included(connector.dynamically_included_destinations),
        statically_included=_included(connector.statically_included_destinations),
    )


def with_password(settings: BridgeSettings, connector: NetworkConnector) -> BridgeSettings:
    """Return *settings* with the password as its file has it now. Raises OSError."""
    if connector.password_file is None:
        return settings
    try:
        password = Path(connector.password_file).read_text("utf-8").removesuffix("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise OSError(f"passwordFile: {error}") from error
    return replace(settings, password=password)


def encryption(connector: NetworkConnector) -> ssl.SSLContext:
    """Return what encrypts a connector's connections. Raises OSError for its files."""
    tls = connector.tls or NetworkTls()
    try:
        context = ssl.create_default_context(cafile=tls.ca_file)
    except (OSError, ValueError) as error:
        raise OSError(f"tls.caFile: {tls.ca_file}: {error}") from error
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if tls.certificate_file is not None:
        try:
            context.load_cert_chain(tls.certificate_file, tls.key_file, no_password)
        except (OSError, ValueError) as error:
            raise OSError(f"tls.certificateFile: {tls.certificate_file}: {error}") from error
    return context


def _included(destinations: Iterable[NetworkDestination]) -> tuple[Included, ...]:
    return tuple(
        Included(
            Destination(Kind.QUEUE if each.kind == "Queue" else Kind.TOPIC, each.name),
            each.force_durable,
        )
        for each in destinations
    )
