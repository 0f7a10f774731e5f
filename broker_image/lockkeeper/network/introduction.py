"""The first commands of a bridge to the other broker, as ActiveMQ's send them."""

from collections.abc import Iterator

from lockkeeper.broker.core import Broker
from lockkeeper.message.ids import ProducerId
from lockkeeper.message.openwire import (
    BaseCommand,
    BrokerId,
    BrokerInfo,
    ConnectionId,
    ConnectionInfo,
    ProducerInfo,
    SessionId,
    SessionInfo,
)
from lockkeeper.network.listening import SESSION, advisory_consumer
from lockkeeper.network.properties import properties_of
from lockkeeper.network.settings import BridgeSettings


def introduction(
    broker: Broker, settings: BridgeSettings, identifier: str, own_url: str | None
) -> Iterator[BaseCommand]:
    """Yield them; *identifier* becomes the connection's.

    Only who dials says that it is a broker, and where its clients go: None for the other end.

    With a static bridge nobody listens to advisories.
    """
    if own_url is not None:
        yield BrokerInfo(
            broker_id=BrokerId(broker.broker_id),
            broker_url=own_url,
            broker_name=broker.name,
            duplex_connection=settings.duplex,
            network_connection=True,
            network_properties=properties_of(settings, broker.name),
        )
    yield ConnectionInfo(
        connection_id=ConnectionId(identifier),
        client_id=settings.client_id_token.join((settings.name, broker.name, "outbound")),
        user_name=settings.user_name,
        password=settings.password,
        client_master=True,
    )
    yield SessionInfo(session_id=SessionId(identifier, SESSION))
    yield ProducerInfo(producer_id=ProducerId(identifier, 1, SESSION))
    if not settings.static_bridge:
        yield advisory_consumer(settings, identifier)
