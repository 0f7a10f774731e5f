"""Passwords and tokens: found where they are, made up where there are none, hashed for the pods."""

import asyncio
import hashlib
import secrets
from base64 import b64decode
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from lockkeeper_api import BrokerSpec
from lockkeeper_api.passwords import InvalidHashError, hashed, matches
from lockkeeper_api.pod_names import ADMIN_TOKEN_FILE
from lockkeeper_operator.brokers.desired.subject import (
    admin_secret_of,
    made_up_secret_of,
    secret_of_others,
    users_of,
)
from lockkeeper_operator.kubernetes.api.kinds import SECRET
from lockkeeper_operator.kubernetes.api.server import ApiServer
from lockkeeper_operator.kubernetes.caches.caches import Caches
from lockkeeper_operator.kubernetes.children.ownership import Owner, stranger
from lockkeeper_operator.kubernetes.manifests import Manifest
from lockkeeper_operator.names import AUTHORITY_FILE, USERS_FILE

PASSWORD_BYTES, TOKEN_BYTES = 24, 32
SALT_BYTES = 16
FOREIGN_SECRET_SECONDS = 20.0
"""How old may be what is known of a Secret that somebody else looks after."""


@dataclass(frozen=True, slots=True)
class Who:
    """The Broker, or the owner of a Secret, that credentials are for."""

    namespace: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class Credentials:
    """What a Subject is made with; *foreign* says that some are in Secrets of others.

    *authority* vouches for the certificate of the first listener, as PEM, where that is in such a
    Secret and is told there.
    """

    passwords: dict[str, str] = field(repr=False)
    hashes: dict[str, str] = field(repr=False)
    admin_token: str = field(repr=False)
    authority: str | None
    foreign: bool


class CredentialStore:
    """Knows the credentials of all Brokers."""

    def __init__(self, api: ApiServer, caches: Caches) -> None:
        self._api, self._caches = api, caches
        self._made: dict[Who, dict[str, str]] = {}
        self._written: dict[Who, set[str]] = {}
        """Secrets that the API server was seen to have."""
        self._hashes: dict[Who, dict[str, tuple[str, str]]] = {}
        self._foreign: dict[tuple[str, str, str], tuple[float, str | None]] = {}
        # A hash takes some 50 ms, as it must; only it leaves the event loop, one at a time.
        self._hashing = ThreadPoolExecutor(1, "hashing")

    def close(self) -> None:
        """Let the thread go."""
        self._hashing.shutdown(wait=False, cancel_futures=True)

    def forget(self, namespace: str, name: str) -> None:
        """Forget the Brokers of that name."""
        for known in (self._made, self._written, self._hashes):
            for who in [who for who in known if (who.namespace, who.name) == (namespace, name)]:
                del known[who]

    async def of(
        self, who: Who, spec: BrokerSpec, of_networks: Mapping[str, str] | None = None
    ) -> Credentials:
        """Return the credentials of a Broker; a user whose Secret is not there has none.

        *of_networks* are the passwords of users by which bridges come in.
        """
        token = await self.made_up(who, admin_secret_of(who.name), ADMIN_TOKEN_FILE, TOKEN_BYTES)
        made_up: dict[str, str] = {}
        known: dict[str, str] = {}
        foreign = False
        for user in users_of(spec):
            if user.secret_name is None:
                name = made_up_secret_of(who.name, user.name)
                known[user.name] = await self.made_up(who, name, "password", PASSWORD_BYTES)
                made_up[user.name] = known[user.name]
                continue
            foreign = True
            password = await self.of_others(who.namespace, user.secret_name, "password")
            if password is not None:
                known[user.name] = password
        hashes = await self._hashes_of(who, {**known, **(of_networks or {})})
        certified = secret_of_others(who.name, spec.listeners[0])
        authority = None
        if certified is not None:
            foreign = True
            authority = await self.of_others(who.namespace, certified, AUTHORITY_FILE)
        return Credentials(made_up, hashes, token, authority, foreign)

    async def made_up(self, who: Who, secret: str, key: str, size: int) -> str:
        """Return a value that the operator makes up once, and finds again in its Secret."""
        found = self._caches.children[SECRET.name].get(who.namespace, secret)
        made, written = self._made.setdefault(who, {}), self._written.setdefault(who, set())
        if found is None:
            # Never made up anew only because the cache does not have it yet.
            found = await self._api.read_if_there(SECRET, who.namespace, secret)
        if found is None and secret in written:
            # Whoever deletes it wants another value: now, and not one that depends on whether
            # this process remembers the old one.
            written.discard(secret)
            del made[secret]
        if found is not None and not stranger(found, Owner(who.name, who.uid)):
            value = _value(found, key)
            if value:
                made[secret] = value
                written.add(secret)
        if secret not in made:
            made[secret] = secrets.token_urlsafe(size)
        return made[secret]

    async def of_others(self, namespace: str, secret: str, key: str) -> str | None:
        """Return a value of a Secret that somebody else may look after, None for none."""
        now = asyncio.get_running_loop().time()
        place = (namespace, secret, key)
        read_at, value = self._foreign.get(place, (-FOREIGN_SECRET_SECONDS, None))
        if now - read_at >= FOREIGN_SECRET_SECONDS:
            found = await self._api.read_if_there(SECRET, namespace, secret)
            value = None if found is None else _value(found, key)
            self._foreign[place] = (now, value)
        return value

    async def _hashes_of(self, who: Who, passwords: dict[str, str]) -> dict[str, str]:
        """Return the hashes; one that is in the users' Secret and still right stays."""
        known = self._hashes.setdefault(who, {})
        if any(known.get(user, ("",))[0] != password for user, password in passwords.items()):
            lines = self._lines(who)
            for user, password in passwords.items():
                if known.get(user, ("",))[0] != password:
                    made = await asyncio.get_running_loop().run_in_executor(
                        self._hashing, _hash, password, lines.get(user), _salt(who, user)
                    )
                    known[user] = (password, made)
        return {user: known[user][1] for user in passwords}

    def _lines(self, who: Who) -> dict[str, str]:
        found = self._caches.children[SECRET.name].get(who.namespace, f"{who.name}-users")
        text = (found and _value(found, USERS_FILE)) or ""
        pairs = (line.partition(":") for line in text.splitlines())
        return {name: hash for name, _, hash in pairs}


def _hash(password: str, present: str | None, salt: bytes) -> str:
    """Return *present* if it is a hash of *password*, else a new one."""
    try:
        if present and matches(password, present):
            return present
    except InvalidHashError:
        pass
    return hashed(password, salt)


def _salt(who: Who, user: str) -> bytes:
    """Return a salt that is the user's own, and the same each time."""
    text = "\0".join((who.uid, who.namespace, who.name, user))
    return hashlib.sha256(text.encode()).digest()[:SALT_BYTES]


def _value(secret: Manifest, key: str) -> str | None:
    """Return a value of a Secret, None where there is none that is text."""
    try:
        return b64decode(secret.get("data", {})[key]).decode()
    except (KeyError, ValueError):
        return None
