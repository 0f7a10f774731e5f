"""The scheme's name in kombu's table of transports.

kombu has no entry points for transports, but it loads those for serializers before Celery connects
anywhere. Ours brings a serializer for plain texts, and the name of the transport with it.
"""

from kombu.transport import TRANSPORT_ALIASES

PREFIX = "lockkeeper"
TRANSPORT = "lockkeeper.integrations.kombu.transport:Transport"
TLS_TRANSPORT = "lockkeeper.integrations.kombu.transport:TlsTransport"


def register() -> None:
    """Make the transport known to kombu."""
    TRANSPORT_ALIASES[PREFIX] = TRANSPORT
    # kombu leaves these together where it goes on to the next of several URLs.
    TRANSPORT_ALIASES[f"{PREFIX}+openwire"] = TRANSPORT
    TRANSPORT_ALIASES[f"{PREFIX}+openwire+ssl"] = TLS_TRANSPORT


def _unchanged(text: str) -> str:
    return text


register()
text_serializer = (_unchanged, _unchanged, "text/plain", "utf-8")
"""`serializer="lockkeeper-text"`: a str as the body of a TextMessage, nothing around it."""
