"""The operator's own authority, by which it knows brokers: kept, renewed, replaced when it is gone.

It is a Secret beside the operator. For a day after a renewal the one before is trusted as well:
so long brokers may take to have certificates of the new one, which needs a minute or two.
"""

import asyncio
import logging
from base64 import b64decode
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from lockkeeper_operator.certificates.issuing import CLOCKS_DIFFER, Pair, facts_of, new_authority
from lockkeeper_operator.kubernetes.api.errors import NOT_FOUND, ApiError
from lockkeeper_operator.kubernetes.api.kinds import SECRET
from lockkeeper_operator.kubernetes.api.server import ApiServer
from lockkeeper_operator.kubernetes.encoding import encoded
from lockkeeper_operator.kubernetes.manifests import Manifest
from lockkeeper_operator.names import AUTHORITY_FILE, CERTIFICATE_FILE, KEY_FILE, PART_OF_LABEL

LOOK_SECONDS = 20.0
RETRY_SECONDS = 2.0
OVERLAP = timedelta(days=1)
log = logging.getLogger(__name__)


def now() -> datetime:
    """Return the time by which certificates are valid or not."""
    return datetime.now(UTC).replace(microsecond=0)


@dataclass(frozen=True, slots=True)
class Trust:
    """An authority, and the PEM of all that are trusted: it, and for a while the one before."""

    own: Pair
    authorities: str


class Authority:
    """One for the whole operator; *changed* is told when it is another, or trusts others."""

    def __init__(
        self, api: ApiServer, namespace: str, name: str, changed: Callable[[Trust], None]
    ) -> None:
        self._api, self._namespace, self._name = api, namespace, name
        self._changed = changed
        self._trust: Trust | None = None
        self._homeless = False
        self.problem = ""
        """Why there is none, or why it cannot be looked at."""

    @property
    def trust(self) -> Trust:
        """What there is at present; only after `begin`."""
        assert self._trust is not None
        return self._trust

    async def begin(self) -> None:
        """Find it, or make it, as long as that takes."""
        while self._trust is None:
            await self._try_to_look()
            if self._trust is None:
                await asyncio.sleep(RETRY_SECONDS)

    async def keep(self) -> None:
        """Look after it, for ever."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            await self._try_to_look()

    async def _try_to_look(self) -> None:
        try:
            await self._look()
            self.problem = ""
        except ApiError as error:
            problem = f"the Secret {self._name} of {self._namespace}: {error}"
            if problem != self.problem:
                log.warning("%s", problem)
            self.problem = problem

    async def _look(self) -> None:
        found = await self._api.read_if_there(SECRET, self._namespace, self._name)
        kept = self._trust if found is None and self._homeless else _trust_of(found)
        renewed = self._renewed(kept)
        if renewed != kept:
            await self._write(renewed)
        if renewed != self._trust:
            self._trust = renewed
            self._changed(renewed)

    def _renewed(self, kept: Trust | None) -> Trust:
        """Return what is to be there in place of what is *kept*, mostly just that."""
        moment = now()
        facts = None if kept is None else facts_of(kept.own, kept.own.certificate)
        if kept is not None and facts is not None and facts.is_fresh(moment):
            settled = moment > facts.begins + CLOCKS_DIFFER + OVERLAP
            own = kept.own.certificate
            both = kept.authorities if own in kept.authorities else own + kept.authorities
            return Trust(kept.own, own if settled else both)
        log.info("this operator makes a new certificate authority for its brokers")
        own_pair = new_authority(self._name, moment)
        before = (
            self._trust.own if self._trust is not None else kept.own if facts and kept else None
        )
        return Trust(own_pair, own_pair.certificate + (before.certificate if before else ""))

    async def _write(self, trust: Trust) -> None:
        values = {
            CERTIFICATE_FILE: trust.own.certificate,
            KEY_FILE: trust.own.key,
            AUTHORITY_FILE: trust.authorities,
        }
        secret = {
            "apiVersion": "v1",
            "kind": SECRET.name,
            "metadata": {
                "name": self._name,
                "namespace": self._namespace,
                "labels": {PART_OF_LABEL: "lockkeeper"},
            },
            "type": "kubernetes.io/tls",
            "data": encoded(values),
        }
        try:
            await self._api.apply(secret, force=True)
        except ApiError as error:
            if error.status != NOT_FOUND:
                raise
            # Somebody tries it out from elsewhere.
            self._homeless = True
            log.warning(
                "namespace %s does not exist: the certificate authority ends with this process",
                self._namespace,
            )


def _trust_of(secret: Manifest | None) -> Trust | None:
    """Return what a Secret holds, None where that is nothing which can be used."""
    data = {} if secret is None else secret.get("data") or {}
    try:
        certificate, key = (b64decode(data[name]).decode() for name in (CERTIFICATE_FILE, KEY_FILE))
        return Trust(Pair(certificate, key), b64decode(data.get(AUTHORITY_FILE, "")).decode())
    except (KeyError, ValueError):
        return None
