"""Times that brokers write into messages: brokerInTime, brokerOutTime (openwire.md section 8)."""

from lockkeeper.message import openwire
from lockkeeper.message.layout import BLOB_MESSAGE, BROKER_IN_TIME_AT, BROKER_OUT_TIME_AT


def arrival(body: bytes) -> int:
    """Return when a message came to its broker, in ms since the epoch; 0 if none has noted it."""
    if body[0] == BLOB_MESSAGE:
        return _blob(body).broker_in_time
    return int.from_bytes(body[BROKER_IN_TIME_AT:BROKER_OUT_TIME_AT], "big")


def arrived(body: bytes, now: int) -> bytes:
    """Return a blob message's bytes with *now* (ms since the epoch) as its brokerInTime."""
    fields = _blob(body)
    fields.broker_in_time = now
    return openwire.encode(fields)


def leaving(body: bytes, now: int) -> tuple[bytes | memoryview, bytes]:
    """Return a message's bytes with *now* as its brokerOutTime, in two pieces.

    The first one of a message that is no blob message is a view of *body*.
    """
    if body[0] == BLOB_MESSAGE:
        fields = _blob(body)
        fields.broker_out_time = now
        return openwire.encode(fields), b""
    return memoryview(body)[:BROKER_OUT_TIME_AT], now.to_bytes(8, "big") + body[-1:]


def _blob(body: bytes) -> openwire.ActiveMQBlobMessage:
    fields, _ = openwire.decode(body)
    assert isinstance(fields, openwire.ActiveMQBlobMessage)
    return fields
