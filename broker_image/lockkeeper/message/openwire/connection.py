"""Structures of connections and sessions (openwire.md sections 1.1 and 6)."""

from enum import IntEnum
from typing import Annotated, TypeAlias

from lockkeeper.message.destination import Destination
from lockkeeper.message.ids import ProducerId
from lockkeeper.message.openwire.identities import (
    BrokerId,
    ConnectionId,
    ConsumerId,
    SessionId,
)
from lockkeeper.message.openwire.structure import (
    VERSION_MAX,
    Array,
    Cached,
    DataStructure,
    Failure,
    Flag,
    Int8,
    Int32,
    Int64,
    Nested,
    Octets,
    Properties,
    Raw8,
    Since,
    Text,
    base,
    structure,
)

MAGIC = b"ActiveMQ"
DELIVERED_UNKNOWN = -2
"""RemoveInfo.last_delivered_sequence: the client does not know what it delivered."""

DELIVERED_NOTHING = -1
"""RemoveInfo.last_delivered_sequence: the application got no message."""

ClientObjectId: TypeAlias = ConnectionId | SessionId | ConsumerId | ProducerId


class DestinationOperation(IntEnum):
    """DestinationInfo.operation_type."""

    ADD = 0
    REMOVE = 1


@base
class BaseCommand(DataStructure):
    """The beginning of every command: its number, and whether it wants a Response."""

    command_id: Int32 = 0
    response_required: Flag = False


@structure(1)
class WireFormatInfo(DataStructure):
    """The first frame of either side: its version and options."""

    magic: Raw8 = MAGIC
    version: Int32 = VERSION_MAX
    properties: Properties = None


@structure(2)
class BrokerInfo(BaseCommand):
    """The broker introduces itself."""

    broker_id: Cached[BrokerId] = None
    broker_url: Text = None
    peer_broker_infos: Array["BrokerInfo"] = None
    broker_name: Text = None
    slave_broker: Flag = False
    master_broker: Flag = False
    fault_tolerant_configuration: Flag = False
    duplex_connection: Annotated[Flag, Since(2)] = False
    network_connection: Annotated[Flag, Since(2)] = False
    connection_id: Annotated[Int64, Since(2)] = 0
    broker_upload_url: Annotated[Text, Since(3)] = None
    network_properties: Annotated[Text, Since(3)] = None


@structure(3)
class ConnectionInfo(BaseCommand):
    """A client opens its connection."""

    connection_id: Cached[ConnectionId] = None
    client_id: Text = None
    password: Text = None
    user_name: Text = None
    broker_path: Array[BrokerId] = None
    broker_master_connector: Flag = False
    manageable: Flag = False
    client_master: Annotated[Flag, Since(2)] = False
    fault_tolerant: Annotated[Flag, Since(6)] = False
    failover_reconnect: Annotated[Flag, Since(6)] = False
    client_ip: Annotated[Text, Since(8)] = None


@structure(4)
class SessionInfo(BaseCommand):
    """A client opens a session."""

    session_id: Cached[SessionId] = None


@structure(8)
class DestinationInfo(BaseCommand):
    """A client creates or deletes a destination, a temporary one as a rule."""

    connection_id: Cached[ConnectionId] = None
    destination: Cached[Destination] = None
    operation_type: Int8 = DestinationOperation.ADD
    timeout: Int64 = 0
    broker_path: Array[BrokerId] = None


@structure(10)
class KeepAliveInfo(BaseCommand):
    """Nothing to say, but alive."""


@structure(11)
class ShutdownInfo(BaseCommand):
    """The sender closes its socket next."""


@structure(12)
class RemoveInfo(BaseCommand):
    """A client closes what the id names: a connection, session, consumer or producer."""

    object_id: Cached[ClientObjectId] = None
    last_delivered_sequence: Annotated[Int64, Since(5)] = DELIVERED_UNKNOWN


@structure(14)
class ControlCommand(BaseCommand):
    """A text command of old administration tools."""

    command: Text = None


@structure(15)
class FlushCommand(BaseCommand):
    """The sender wants everything before it to be handled."""


@structure(16)
class ConnectionError(BaseCommand):
    """The broker reports an error that belongs to no request."""

    exception: Failure = None
    connection_id: Nested[ConnectionId] = None


@structure(18)
class ConnectionControl(BaseCommand):
    """Either side controls the connection; lists of broker URIs are separated by commas."""

    close: Flag = False
    exit: Flag = False
    fault_tolerant: Flag = False
    resume: Flag = False
    suspend: Flag = False
    connected_brokers: Annotated[Text, Since(6)] = None
    reconnect_to: Annotated[Text, Since(6)] = None
    rebalance_connection: Annotated[Flag, Since(6)] = False
    token: Annotated[Octets, Since(8)] = None
