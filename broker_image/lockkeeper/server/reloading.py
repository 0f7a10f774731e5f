"""Taking over another configuration, and secrets that have changed, while the process runs.

Everything is looked at every few seconds; a configuration also comes by the admin endpoint.
What is wrong changes nothing: it is told in the log and in the status, and tried again when it
changes.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lockkeeper.broker.access.renewal import renew_rights
from lockkeeper.broker.adopting import adopt_policies
from lockkeeper.broker.errors import BrokerError
from lockkeeper.server.access import PasswordAuthenticator, authenticator_of
from lockkeeper.server.configuration import (
    Configuration,
    RefusedConfigurationError,
    Sources,
    changed,
    check_change,
    hash_of,
    read_configuration,
    read_files,
)
from lockkeeper.server.engine import Engine
from lockkeeper.server.networks.connectors import NetworkConnectors
from lockkeeper.server.secrets import (
    USERS,
    InvalidSecretError,
    Signature,
    read_users,
    signature,
)
from lockkeeper.server.settings import configuration_hash, declare_resource, policy_map
from lockkeeper_api import Broker, Destination

logger = logging.getLogger(__name__)

LOOK_SECONDS = 2.0


@dataclass
class _Watched:
    """Files, and what to do when one of them has changed."""

    files: Sequence[Path]
    reload: Callable[[], None]
    seen: Signature = ()

    def reload_if_changed(self) -> None:
        """Reload if a file has changed."""
        now = signature(self.files)
        if now != self.seen:
            self.seen = now
            self.reload()


class Reloading:
    """Present configuration of the process: `broker` and `destinations`.

    `refused` is the hash of what could not be taken over last, `refusal` why.
    """

    def __init__(
        self,
        broker: Broker,
        declared: Configuration,
        files: Sequence[Path],
        secrets: Path | None,
    ) -> None:
        """*broker* is the one that *declared* has, with the addresses of the command line.

        Raises InvalidSecretError.
        """
        self.broker = broker
        self.destinations = declared.destinations
        self.refused: str | None = None
        self.refusal: str | None = None
        self._declared = declared
        self.authenticator: PasswordAuthenticator | None = None
        self.networks: NetworkConnectors | None = None
        """Bridges of the master; they go by it, too."""
        self._engine: Engine | None = None
        self._replica = ""
        self._troubles: dict[str, str] = {}
        self._files = files
        self._watched = [_Watched(files, self._reread)] if files else []
        if secrets is not None:
            self._admit_users(secrets)
        self._task = asyncio.get_running_loop().create_task(self._watch_files())

    def _admit_users(self, secrets: Path) -> None:
        """Let only users in, those of the moment. Raises InvalidSecretError."""
        users = [secrets / USERS]
        seen = signature(users)
        authenticator = self.authenticator = authenticator_of(self.broker.spec.access, secrets)
        self.watch(users, lambda: self._reload_users(secrets, authenticator), seen)

    def watch(self, files: Sequence[Path], reload: Callable[[], None], seen: Signature) -> None:
        """Call *reload*, which may raise InvalidSecretError, whenever one of *files* changes.

        *seen* is their signature from before they were read.
        """
        what = str(files[0])

        def guarded() -> None:
            try:
                reload()
            except InvalidSecretError as error:
                self._troubles[what] = str(error)
                logger.error("%s; the previous version stays in use", error)
            else:
                self._troubles.pop(what, None)
                logger.info("took over %s", what)

        self._watched.append(_Watched(files, guarded, seen))

    async def _watch_files(self) -> None:
        while True:
            for watched in self._watched:
                watched.reload_if_changed()
            await asyncio.sleep(LOOK_SECONDS)

    def close(self) -> None:
        """Look at nothing any more."""
        self._task.cancel()

    # The broker that goes by it

    def serve(self, engine: Engine, given: Broker, replica: str) -> None:
        """Have a master go by it, which was *given* a resource when it began."""
        self._engine, self._replica = engine, replica
        if self.authenticator is not None:
            self.authenticator.engine = engine
        if self.broker is not given:
            self._apply(engine, self._declared)
        else:
            self._record(engine, self.broker, self.destinations)

    def leave(self) -> None:
        """Forget the master: it is none any more."""
        self._engine = self.networks = None
        if self.authenticator is not None:
            self.authenticator.close()

    # Configurations

    def _reread(self) -> None:
        """Take the mounted files."""
        try:
            sources = read_files(self._files)
        except RefusedConfigurationError as error:
            self._refuse(None, str(error))
            return
        with suppress(RefusedConfigurationError):
            self.take_configuration(sources)

    def take_configuration(self, sources: Sources) -> str:
        """Take over a configuration, and return its hash. Raises RefusedConfigurationError."""
        found = hash_of(sources)
        if found == self._declared.hash:
            self.refused = self.refusal = None
            return found
        try:
            self._change(read_configuration(sources, self._declared.broker))
        except (RefusedConfigurationError, BrokerError) as error:
            self._refuse(found, str(error))
            raise RefusedConfigurationError(str(error)) from error
        self.refused = self.refusal = None
        logger.info("took over configuration %s", found)
        return found

    def _refuse(self, hash: str | None, reason: str) -> None:
        if (self.refused, self.refusal) != (hash, reason):
            logger.error("configuration %s refused: %s", hash or "", reason)
        self.refused, self.refusal = hash, reason

    def _change(self, new: Configuration) -> None:
        """Go by another configuration. Raises what refuses it, with nothing changed."""
        check_change(self._declared.broker, new.broker)
        if self._engine is not None:
            self._apply(self._engine, new)
        if self.authenticator is not None:
            self.authenticator.change_access(new.broker.spec.access)
            self._renew_rights()
        self.broker = changed(self.broker, new.broker)
        self.destinations = new.destinations
        self._declared = new

    def _apply(self, engine: Engine, new: Configuration) -> None:
        """Give a master its policies and destinations. Raises BrokerError, with nothing changed."""
        engine.stamp()
        broker = engine.broker
        adopt_policies(broker, policy_map(new.broker, new.destinations))
        for resource in new.destinations:
            declare_resource(broker, resource)
        if self.networks is not None:
            self.networks.adopt(new.broker.spec.network_connectors)
        self._record(engine, changed(self.broker, new.broker), new.destinations)
        engine.wake()

    def _record(self, engine: Engine, broker: Broker, destinations: Sequence[Destination]) -> None:
        asked = configuration_hash(broker, destinations)
        engine.recorder.event("configuration", engine.now, replica=self._replica, hash=asked)

    # Users

    def _reload_users(self, secrets: Path, authenticator: PasswordAuthenticator) -> None:
        authenticator.change_users(read_users(secrets))
        self._renew_rights()

    def _renew_rights(self) -> None:
        if self._engine is not None and self.authenticator is not None:
            self._engine.stamp()
            renew_rights(self._engine.broker, self.authenticator.renewed)
            self._engine.wake()

    # What the admin endpoint tells

    def status(self) -> dict[str, Any]:
        """Return what the process goes by, what it refused, and which secrets it could not use."""
        return {
            "configuration": self._declared.hash,
            "refused": self.refused,
            "refusal": self.refusal,
            "secretsRefused": list(self._troubles.values()),
        }
