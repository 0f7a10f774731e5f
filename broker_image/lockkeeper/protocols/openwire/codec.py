"""Negotiation: the WireFormatInfo of both sides, and the codec that follows from it."""

from typing import Final

from lockkeeper.message.openwire import WireFormatInfo, codec_for
from lockkeeper.message.openwire.connection import MAGIC
from lockkeeper.message.primitives import Long, Value
from lockkeeper.protocols.openwire.agreement import Agreement
from lockkeeper.protocols.openwire.errors import ProtocolError
from lockkeeper.protocols.settings import ListenerSettings

VERSION: Final = 12
# Messages of these versions are stored and dispatched as they are (openwire.md section 8).
SPLICED_VERSION_MIN: Final = 10


def offer(settings: ListenerSettings) -> WireFormatInfo:
    """Return our side's WireFormatInfo: no tight encoding, no cache, and the peer follows."""
    properties: dict[str, Value] = {
        "StackTraceEnabled": False,
        "TcpNoDelayEnabled": True,
        "CacheEnabled": False,
        "CacheSize": 1024,
        "TightEncodingEnabled": False,
        "SizePrefixDisabled": False,
        "MaxInactivityDuration": Long(settings.inactivity_duration),
        "MaxInactivityDurationInitalDelay": Long(settings.inactivity_initial_delay),
        "MaxFrameSize": Long(settings.frame_bytes_max),
        # Without it newer clients keep no limit of their own, whatever the size says.
        "MaxFrameSizeEnabled": True,
        "ProviderName": "Lockkeeper",
    }
    return WireFormatInfo(version=VERSION, properties=properties)


def agree(settings: ListenerSettings, peer: WireFormatInfo) -> Agreement:
    """Return what follows from our offer and the peer's. Raises ProtocolError."""
    if peer.magic != MAGIC:
        raise ProtocolError("the peer does not speak OpenWire: its magic is not ActiveMQ")
    if peer.version < 1:
        raise ProtocolError(f"OpenWire version {peer.version} is below 1")
    properties = peer.properties or {}
    codec = codec_for(min(VERSION, peer.version), False)
    return Agreement(
        codec,
        _smaller(settings.inactivity_duration, properties.get("MaxInactivityDuration")),
        _smaller(
            settings.inactivity_initial_delay, properties.get("MaxInactivityDurationInitalDelay")
        ),
        codec.version >= SPLICED_VERSION_MIN,
    )


def _smaller(ours: int, theirs: Value) -> int:
    return min(ours, theirs) if isinstance(theirs, int) and theirs >= 0 else 0
