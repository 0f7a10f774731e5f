"""Protocol errors, which end a connection: bytes that are not RocketMQ's."""


class ProtocolError(Exception):
    """The peer broke the protocol; the connection ends with this text as its reason."""
