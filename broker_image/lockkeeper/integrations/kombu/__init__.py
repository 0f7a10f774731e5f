"""The kombu transport, on which Celery runs: `lockkeeper+openwire://host:port`.

Importing it makes the scheme known. kombu imports it by itself before it looks for serializers.

Comes in: kombu's channels, exchanges and messages. Never here: bytes of OpenWire, or Celery.
"""

from typing import Any

from lockkeeper.integrations.kombu import registering

registering.register()


def __getattr__(name: str) -> Any:
    """Return `Transport` once it is asked for: this is imported in the middle of kombu."""
    if name in ("Transport", "TlsTransport"):
        from lockkeeper.integrations.kombu import transport

        return getattr(transport, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
