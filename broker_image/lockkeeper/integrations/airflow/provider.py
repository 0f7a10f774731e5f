"""The message queue provider: which trigger stands for `lockkeeper+openwire`."""

from typing import Any
from urllib.parse import unquote, urlsplit

from airflow.providers.common.messaging.providers.base_provider import BaseMessageQueueProvider

from lockkeeper.client.url import DEFAULT_PORT, DEFAULT_TLS_PORT
from lockkeeper.integrations.airflow import SCHEME
from lockkeeper.integrations.airflow.trigger import LockkeeperMessageTrigger

_PLACES = {SCHEME: ("tcp", DEFAULT_PORT), f"{SCHEME}+ssl": ("ssl", DEFAULT_TLS_PORT)}


class LockkeeperMessageQueueProvider(BaseMessageQueueProvider):  # type: ignore[misc]
    """Found by `MessageQueueTrigger(scheme="lockkeeper+openwire", …)`, or by a queue's URI."""

    scheme = SCHEME

    def queue_matches(self, queue: str) -> bool:
        """Return whether a queue's URI is for us."""
        return queue.partition("://")[0] in _PLACES

    def trigger_class(self) -> type[LockkeeperMessageTrigger]:
        """Return the trigger."""
        return LockkeeperMessageTrigger

    def trigger_kwargs(self, queue: str, **kwargs: Any) -> dict[str, Any]:
        """Return `url` and `destination` of `lockkeeper+openwire://host:port/QUEUE?options`.

        Raises ValueError for a URI without a host or a queue, or with a password.
        """
        parts = urlsplit(queue)
        if parts.username is not None:
            raise ValueError("a queue's URI is no place for a user: make a connection, say conn_id")
        destination = unquote(parts.path.removeprefix("/"))
        if not parts.hostname or not destination:
            raise ValueError(f"{queue!r} is not {SCHEME}://host:port/QUEUE")
        transport, usual = _PLACES[parts.scheme]
        where = parts.netloc if parts.port else f"{parts.netloc.rstrip(':')}:{usual}"
        options = f"?{parts.query}" if parts.query else ""
        return {"url": f"{transport}://{where}{options}", "destination": destination}
