"""A minimal client of the Kubernetes API server, with the service account of the pod.

The official package adds 32 MB of memory to a broker, which needs two kinds of object and three
verbs.
"""

import json
import ssl
from typing import Any, Self

import aiohttp

from lockkeeper.server.cluster.pod_environment import ApiServerAccess

MERGE_PATCH = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
FIELD_MANAGER = "lockkeeper-broker"
ANSWER_BYTES_MAX = 4 * 1024 * 1024
NOT_FOUND, FORBIDDEN, CONFLICT = 404, 403, 409


class ApiServerError(Exception):
    """The API server did not do what it was asked to; *code* is its own, 0 without an answer."""

    def __init__(self, text: str, code: int = 0) -> None:
        super().__init__(text)
        self.code = code


class ApiServer:
    """Asks the API server; one request at a time is what it is made for."""

    def __init__(self, access: ApiServerAccess) -> None:
        self._access = access
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        """Return the client itself."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close its connections."""
        await self.close()

    async def get(self, path: str, timeout: float) -> dict[str, Any]:
        """Return the object at *path*, within *timeout* seconds. Raises ApiServerError."""
        return await self._ask("GET", path, timeout)

    async def replace(self, path: str, value: Any, timeout: float) -> dict[str, Any]:
        """Put *value* where it says to be, if it is of the version that is there now.

        Raises ApiServerError, with CONFLICT when another was faster.
        """
        return await self._ask("PUT", path, timeout, value, "application/json")

    async def patch(
        self, path: str, value: Any, timeout: float, kind: str = MERGE_PATCH
    ) -> dict[str, Any]:
        """Change a part of an object. Raises ApiServerError."""
        return await self._ask("PATCH", path, timeout, value, kind)

    async def close(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def _ask(
        self, verb: str, path: str, timeout: float, value: Any = None, kind: str = ""
    ) -> dict[str, Any]:
        try:
            async with self._open().request(
                verb,
                f"{self._access.url}{path}",
                params={"fieldManager": FIELD_MANAGER} if value is not None else None,
                data=None if value is None else json.dumps(value),
                headers=self._headers(kind),
                timeout=aiohttp.ClientTimeout(total=timeout),
                allow_redirects=False,
            ) as answer:
                body = bytearray()
                # A read gives what has come so far, not the whole.
                async for chunk in answer.content.iter_any():
                    body += chunk
                    if len(body) > ANSWER_BYTES_MAX:
                        raise ApiServerError(f"{verb} {path}: more than {ANSWER_BYTES_MAX} bytes")
                return self._understood(verb, path, answer.status, bytes(body))
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            await self.close()
            why = str(error) or f"no answer within {timeout:.1f} s"
            raise ApiServerError(f"{verb} {path}: {why}") from error

    def _understood(self, verb: str, path: str, status: int, body: bytes) -> dict[str, Any]:
        try:
            found = json.loads(body)
        except ValueError:
            found = None
        if status >= 300 or not isinstance(found, dict):
            said = found.get("message") if isinstance(found, dict) else None
            raise ApiServerError(f"{verb} {path}: {status} {said or ''}".rstrip(), status)
        return found

    def _open(self) -> aiohttp.ClientSession:
        """Return the session; after a failure a new one, with the authority's file read anew."""
        if self._session is None:
            authority = self._access.authority_file
            context = ssl.create_default_context(cafile=authority) if authority else None
            connector = aiohttp.TCPConnector(ssl=context if context is not None else True)
            self._session = aiohttp.ClientSession(connector=connector)
        return self._session

    def _headers(self, kind: str) -> dict[str, str]:
        headers = {"Accept": "application/json"}
        if kind:
            headers["Content-Type"] = kind
        if self._access.token_file is not None:
            # Kubernetes renews the token in place, so it is read each time.
            headers["Authorization"] = f"Bearer {self._access.token_file.read_text().strip()}"
        return headers
