"""The hook: what an Airflow connection of the type `lockkeeper` says, as our client's arguments."""

from typing import Any

from airflow.sdk.bases.hook import BaseHook

from lockkeeper import client
from lockkeeper.client import aio
from lockkeeper.client.url import DEFAULT_PORT


class LockkeeperHook(BaseHook):  # type: ignore[misc]
    """Host, port, login and password of a connection; `{"url": "failover:(…)"}` in its extra wins.

    *url* wins over both: the connection has only the user then.
    """

    conn_name_attr = "conn_id"
    default_conn_name = "lockkeeper_default"
    conn_type = "lockkeeper"
    hook_name = "Lockkeeper"

    def __init__(self, conn_id: str = default_conn_name, url: str | None = None) -> None:
        super().__init__()
        self.conn_id = conn_id
        self._url = url

    def get_conn(self) -> client.Connection:
        """Return an open connection, for tasks. Raises MessagingError."""
        return client.connect(**self._arguments(self.get_connection(self.conn_id)))

    async def connect(self) -> aio.Connection:
        """Return an open connection of the asyncio client, for triggers. Raises MessagingError."""
        return await aio.connect(**self._arguments(await self.aget_connection(self.conn_id)))

    def test_connection(self) -> tuple[bool, str]:
        """Return whether the broker lets us in, and what to show."""
        try:
            self.get_conn().close()
        except Exception as error:
            return False, str(error)
        return True, "Connected"

    def _arguments(self, connection: Any) -> dict[str, Any]:
        place = f"tcp://{connection.host or 'localhost'}:{connection.port or DEFAULT_PORT}"
        return {
            "url": self._url or connection.extra_dejson.get("url") or place,
            "user": connection.login or None,
            "password": connection.password or None,
        }
