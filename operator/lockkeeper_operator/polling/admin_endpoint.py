"""Requests to the admin endpoint of one broker."""

import asyncio
import asyncio.sslproto
import hashlib
import json
import ssl
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import aiohttp

STATUS_SECONDS = 2.0
REQUEST_SECONDS = 5.0
POLL_IDLE_SECONDS = 40.0
"""How long a connection for polls is kept; longer than between two of any kind (30 s), shorter than
brokers keep it (45 s)."""
CHANGE_IDLE_SECONDS = 2.0
"""How long one for changes is kept: they come in bursts."""
ANSWER_BYTES_MAX = 64 << 20
TLS_READ_BYTES = 4 << 10
"""Of each connection, for as long as it is kept. asyncio has 256 KiB: 125 MB for 500 brokers, where
this is 2. A longer TLS record (16 KiB at most) takes as many reads."""
_FAILURES = (aiohttp.ClientError, asyncio.TimeoutError, OSError, ValueError)
_PLURALS = {"Queue": "queues", "Topic": "topics", "Stream": "streams"}


class BrokerSilentError(Exception):
    """The broker did not answer, or not what can be understood."""


class BrokerRefusedError(Exception):
    """The broker will not do it; *status* is HTTP's."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class Address:
    """Where a broker's admin endpoint is, and what opens it.

    *name* is what its certificate is for; empty where the broker is of an earlier release, which
    has none, and is asked without TLS.
    """

    host: str
    port: int
    token: str
    name: str = ""

    def url(self, path: str) -> str:
        """Return the URL of *path*."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.name else 'http'}://{host}:{self.port}{path}"


@dataclass(frozen=True, slots=True)
class Listing:
    """A master's list of destinations: *views* as it wrote them, None where *digest* is known.

    *broker* is what it says of itself beside them; brokers of earlier releases do not.
    """

    digest: bytes
    views: list[dict[str, Any]] | None
    broker: dict[str, Any] | None = None


class AdminEndpoints:
    """Asks brokers; one for the whole process.

    A poll takes 0.1 ms over a connection that is kept, 1 ms over a new one (TLS, processor time).
    Each that is kept has some 30 KB. Polls of a pod come one by one, over one connection. Changes
    come many at a time. Idle connections are used in turn, so that those of a burst would stay,
    were polls to use them, too.
    """

    def __init__(self) -> None:
        self._polls = _session(POLL_IDLE_SECONDS)
        self._changes = _session(CHANGE_IDLE_SECONDS)
        self._trusted = tls_of("")
        asyncio.sslproto.SSLProtocol.max_size = TLS_READ_BYTES

    def trust(self, authorities: str) -> None:
        """Take certificates for what these vouch for alone, from now on; PEM."""
        self._trusted = tls_of(authorities)

    async def close(self) -> None:
        """Close what is open."""
        await self._polls.close()
        await self._changes.close()

    async def status(self, address: Address) -> dict[str, Any]:
        """Return what a broker says of itself, whatever its role."""
        return _mapping(await self._poll(address, "/api/v1/status", STATUS_SECONDS))

    async def destinations(self, address: Address, known: bytes = b"") -> Listing:
        """Return the destinations that have an owner, of a master, and what it says of itself.

        *known* is the digest of an answer that need not be read again: most are as they were.
        """
        said = await self._poll(address, "/api/v1/destinations?owned=true", REQUEST_SECONDS)
        digest = hashlib.blake2b(said, digest_size=16).digest()
        if digest == known:
            return Listing(digest, None)
        answer = _mapping(said)
        views, broker = answer.get("destinations"), answer.get("broker")
        if not isinstance(views, list) or not all(isinstance(view, dict) for view in views):
            raise BrokerSilentError("no list of destinations in the answer")
        return Listing(digest, views, broker if isinstance(broker, dict) else None)

    async def destination(self, address: Address, kind: str, name: str) -> dict[str, Any] | None:
        """Return one destination, None where there is none."""
        try:
            return _mapping(await self._change("GET", address, _path(kind, name)))
        except BrokerRefusedError as error:
            if error.status == 404:
                return None
            raise

    async def declare(
        self, address: Address, kind: str, name: str, policy: dict[str, Any] | None, owner: str
    ) -> None:
        """Make a destination, or change its policy."""
        await self._change("PUT", address, _path(kind, name), {"policy": policy, "owner": owner})

    async def remove(self, address: Address, kind: str, name: str, if_empty: bool) -> bool:
        """Remove a destination; False where it is not empty, or in use, and stays."""
        query = f"?ifEmpty={'true' if if_empty else 'false'}"
        try:
            await self._change("DELETE", address, _path(kind, name) + query)
        except BrokerRefusedError as error:
            if error.status == 409:
                return False
            if error.status != 404:
                raise
        return True

    async def purge(self, address: Address, kind: str, name: str) -> int:
        """Remove all messages of a destination; returns how many there were."""
        found = _mapping(await self._change("POST", address, _path(kind, name) + "/purge", {}))
        return int(found.get("removed", 0))

    async def configure(self, address: Address, text: str, configuration: str) -> None:
        """Let a broker take over a configuration, the text of its whole file.

        Raises BrokerRefusedError where it cannot.
        """
        body = {"hash": configuration, "text": text}
        await self._change("POST", address, "/api/v1/configuration", body)

    async def fence(self, address: Address, fenced: bool) -> None:
        """Let a broker let go of everything and take nothing, or let it stand by again."""
        await self._change("POST", address, "/api/v1/fence", {"fenced": fenced})

    async def _poll(self, address: Address, path: str, seconds: float) -> bytes:
        return await self._ask(self._polls, "GET", address, path, None, seconds)

    async def _change(self, verb: str, address: Address, path: str, body: Any = None) -> bytes:
        """Ask what comes in bursts: a change, or the one destination that a change is about."""
        return await self._ask(self._changes, verb, address, path, body, REQUEST_SECONDS)

    async def _ask(
        self,
        session: aiohttp.ClientSession,
        verb: str,
        address: Address,
        path: str,
        body: Any,
        seconds: float,
    ) -> bytes:
        """Return the body of a good answer."""
        headers = {"Authorization": f"Bearer {address.token}"} if address.token else {}
        try:
            async with session.request(
                verb,
                address.url(path),
                json=body,
                headers=headers,
                timeout=aiohttp.ClientTimeout(total=seconds),
                allow_redirects=False,
                ssl=self._trusted,
                server_hostname=address.name or None,
            ) as response:
                said = await response.content.read(ANSWER_BYTES_MAX)
                while not response.content.at_eof() and len(said) < ANSWER_BYTES_MAX:
                    said += await response.content.read(ANSWER_BYTES_MAX)
                if response.status >= 400:
                    message = _mapping(said).get("error", "")
                    raise BrokerRefusedError(response.status, f"{response.status} {message}")
                return said
        except _FAILURES as error:
            raise BrokerSilentError(f"{verb} {path}: {error or type(error).__name__}") from error


def _session(idle_seconds: float) -> aiohttp.ClientSession:
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=idle_seconds),
        cookie_jar=aiohttp.DummyCookieJar(),
    )


def tls_of(authorities: str) -> ssl.SSLContext:
    """Return what knows brokers by these authorities, and by nothing else."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if authorities:
        context.load_verify_locations(cadata=authorities)
    return context


def _path(kind: str, name: str) -> str:
    return f"/api/v1/destinations/{_PLURALS[kind]}/{quote(name, safe='')}"


def _mapping(said: bytes) -> dict[str, Any]:
    try:
        value = json.loads(said) if said else {}
    except ValueError as error:
        raise BrokerSilentError(f"the answer is no JSON: {error}") from error
    if not isinstance(value, dict):
        raise BrokerSilentError("the answer is no JSON object")
    return value
