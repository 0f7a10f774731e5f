"""Users and their passwords: who may connect, with which rights.

A password is checked by a thread, since that takes some 50 ms by design; whoever comes again
with one that was checked is known by a keyed digest of it, which only this process can make.
"""

import hashlib
import hmac
import logging
import secrets
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from lockkeeper.broker.access.authenticator import Verdict
from lockkeeper.broker.access.permissions import PermissionEntry, PermissionMap
from lockkeeper.broker.access.rights import Rights
from lockkeeper.server.checks import Checks
from lockkeeper.server.engine import Engine
from lockkeeper.server.secrets import USERS, read_users
from lockkeeper_api.cluster.access import Access
from lockkeeper_api.passwords import hashed, matches

logger = logging.getLogger(__name__)

ANONYMOUS = "anonymous"
"""The user without a name, and the group of it."""
PASSWORD_CHARACTERS_MAX = 1024


class PasswordAuthenticator:
    """Knows who may connect; implements `Authenticator`.

    Users are those of the file with hashes; if the Broker lists users, only these.
    """

    def __init__(self, access: Access, hashes: Mapping[str, str]) -> None:
        self.engine: Engine | None = None
        self._checks = Checks(matches)
        self._key = secrets.token_bytes(32)
        # Checked for those who are unknown, so that they are refused no faster than others.
        self._nobody = hashed(secrets.token_hex(16), secrets.token_bytes(16))
        self._access = access
        self.change_users(hashes)

    def change_access(self, access: Access) -> None:
        """Go by what another resource says; see `renewed` for those who are in."""
        self._access = access
        self.change_users(self._known)

    def change_users(self, hashes: Mapping[str, str]) -> None:
        """Let those in whose hashes are here; see `renewed` for those who are in."""
        access = self._access
        self._known = hashes
        groups = {user.name: frozenset((user.name, *user.groups)) for user in access.users}
        for name in hashes:
            if not access.users:
                groups[name] = frozenset((name,))
        if access.anonymous:
            groups[""] = frozenset((ANONYMOUS,))
        self._groups = groups
        self._hashes = {name: hash for name, hash in hashes.items() if name in groups}
        self._permissions = _permissions(access)

    def check_password(
        self, user: str | None, password: str | None, tell: Verdict, address: str = ""
    ) -> None:
        """See `Authenticator.check_password`."""
        if user is None and password is None and "" in self._groups:
            tell(self._rights(""))
            return
        name, given = user or "", password or ""
        hash = self._hashes.get(name)
        if len(given) > PASSWORD_CHARACTERS_MAX:
            hash, given = None, ""
        digest = self._digest(name, given, hash or self._nobody)
        host = address.rpartition(":")[0]
        learn = partial(self._learn, name, tell)
        self._checks.ask(digest, given, hash or self._nobody, host, learn)

    def _learn(self, name: str, tell: Verdict, verdict: bool) -> None:
        """Tell what was found."""
        if self.engine is None:
            return
        self.engine.stamp()
        self._give_verdict(name, verdict, tell)
        self.engine.wake()

    def _give_verdict(self, name: str, verdict: bool, tell: Verdict) -> None:
        # Who was removed while the password was being checked does not get in.
        is_let_in = verdict and name in self._hashes
        if not is_let_in:
            logger.warning("refused the login of user %r", name)
        tell(self._rights(name) if is_let_in else None)

    def renewed(self, rights: Rights) -> Rights | None:
        """Return the rights of now of a user who is in; None for one who is unknown by now."""
        name = "" if rights.is_anonymous else rights.user
        return self._rights(name) if name in self._groups else None

    def _rights(self, name: str) -> Rights:
        return Rights(name or ANONYMOUS, self._groups[name], self._permissions, not name)

    def _digest(self, name: str, password: str, hash: str) -> bytes:
        parts = (part.encode(errors="surrogatepass") for part in (hash, name, password))
        return hmac.digest(self._key, b"".join(map(_sized, parts)), hashlib.sha256)

    def close(self) -> None:
        """Check nothing any more."""
        self.engine = None
        self._checks.close()


def authenticator_of(access: Access, directory: Path) -> PasswordAuthenticator:
    """Return who lets the users in that a *directory* of secrets has. Raises InvalidSecretError."""
    users = read_users(directory)
    if not users and not access.anonymous:
        logger.warning(
            "%s names no user, so nobody can connect; `lockkeeper user` adds one", directory / USERS
        )
    return PasswordAuthenticator(access, users)


def _sized(part: bytes) -> bytes:
    return len(part).to_bytes(8, "big") + part


def _permissions(access: Access) -> PermissionMap | None:
    """Return the permissions; None: there are none, so that everything is allowed."""
    if not access.permissions:
        return None
    return PermissionMap(
        PermissionEntry(
            entry.match,
            None if entry.kind is None else entry.kind == "Queue",
            frozenset(entry.read),
            frozenset(entry.write),
            frozenset(entry.admin),
        )
        for entry in access.permissions
    )
