"""Leader election among several replicas of the operator, by a Lease.

Times on the Lease are only compared for change, never with the own clock: a holder is silent when
the Lease has stayed the same for its duration, by the observer's own clock.
"""

import asyncio
import logging
import random
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NoReturn

from lockkeeper_operator.kubernetes.api.errors import CONFLICT, ApiError
from lockkeeper_operator.kubernetes.api.kinds import LEASE
from lockkeeper_operator.kubernetes.api.server import ApiServer
from lockkeeper_operator.kubernetes.manifests import Manifest

DURATION_SECONDS = 10.0
RENEW_DEADLINE_SECONDS = 7.0
RETRY_SECONDS = 2.0
REQUEST_SECONDS = 3.0
log = logging.getLogger(__name__)


class LeadershipLostError(Exception):
    """The Lease could not be renewed in time, or is somebody else's."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """Who stands for election, for which Lease."""

    namespace: str
    lease: str
    identity: str


class Election:
    """One candidate."""

    def __init__(self, api: ApiServer, candidate: Candidate) -> None:
        self._api, self._candidate = api, candidate
        self._seen: Manifest | None = None
        self._seen_at = 0.0
        self._renewed_at = float("-inf")
        self.leads = False
        self.problem = ""
        """What came of the last attempt, where it could not even be made."""

    @property
    def holder(self) -> str:
        """Who holds the Lease, as far as is known; empty for nobody."""
        spec = (self._seen or {}).get("spec", {})
        return str(spec.get("holderIdentity") or "")

    async def win(self) -> None:
        """Wait until the Lease is this candidate's."""
        while not await self._attempt():
            await asyncio.sleep(RETRY_SECONDS * random.uniform(0.8, 1.2))
        self.leads = True
        log.info("%s is the leader now", self._candidate.identity)

    async def keep(self) -> None:
        """Renew the Lease; raises LeadershipLostError when that fails for too long.

        No answer is waited for beyond the deadline, however slowly the server answers.
        """
        while True:
            try:
                async with asyncio.timeout_at(self._renewed_at + RENEW_DEADLINE_SECONDS):
                    await self._renew()
            except TimeoutError:
                self._lose(f"could not be renewed within {RENEW_DEADLINE_SECONDS:g} s")

    async def _renew(self) -> None:
        """Wait, and try until the Lease is renewed; raises LeadershipLostError where another's."""
        await asyncio.sleep(RETRY_SECONDS)
        while not await self._attempt():
            if self.holder not in ("", self._candidate.identity):
                self._lose(f"is {self.holder}'s")
            await asyncio.sleep(RETRY_SECONDS)

    def _lose(self, why: str) -> NoReturn:
        self.leads = False
        raise LeadershipLostError(f"Lease {self._candidate.lease} {why}")

    async def resign(self) -> None:
        """Let another have the Lease at once."""
        if not self.leads or self._seen is None:
            return
        self.leads = False
        spec = {**self._seen["spec"], "holderIdentity": "", "leaseDurationSeconds": 1}
        try:
            async with asyncio.timeout(REQUEST_SECONDS):
                await self._api.replace(LEASE, {**self._seen, "spec": spec})
        except (ApiError, TimeoutError) as error:
            log.info("this replica could not give the Lease back: %s", error)

    async def _attempt(self) -> bool:
        """Return whether the Lease was taken or renewed."""
        begun = asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout(REQUEST_SECONDS):
                taken = await self._take()
        except (ApiError, TimeoutError) as error:
            said = str(error) or "no answer"
            if not isinstance(error, ApiError) or error.status != CONFLICT:
                self.problem = said
                log.warning("this replica cannot renew Lease %s: %s", self._candidate.lease, said)
            return False
        self.problem = ""
        if taken:
            # Counted from before the request: the Lease is not older than that.
            self._renewed_at = begun
        return taken

    async def _take(self) -> bool:
        namespace, name = self._candidate.namespace, self._candidate.lease
        present = await self._api.read_if_there(LEASE, namespace, name)
        if present is None:
            made = {
                "apiVersion": LEASE.api_version,
                "kind": LEASE.name,
                "metadata": {"name": name, "namespace": namespace},
                "spec": self._spec({}),
            }
            self._note(await self._api.create(LEASE, made))
            return True
        self._note(present)
        spec = present.get("spec", {})
        holder = spec.get("holderIdentity") or ""
        if holder not in ("", self._candidate.identity) and not self._is_silent(spec):
            return False
        self._note(await self._api.replace(LEASE, {**present, "spec": self._spec(spec)}))
        return True

    def _note(self, lease: Manifest) -> None:
        """Take note of a Lease, and of the time if it has changed."""
        before = None if self._seen is None else self._seen.get("spec")
        if before != lease.get("spec"):
            self._seen_at = asyncio.get_running_loop().time()
        self._seen = lease

    def _is_silent(self, spec: Manifest) -> bool:
        duration = float(spec.get("leaseDurationSeconds") or DURATION_SECONDS)
        return asyncio.get_running_loop().time() - self._seen_at > duration

    def _spec(self, before: Manifest) -> Manifest:
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        same = before.get("holderIdentity") == self._candidate.identity
        transitions = before.get("leaseTransitions") or 0
        return {
            "holderIdentity": self._candidate.identity,
            "leaseDurationSeconds": int(DURATION_SECONDS),
            "acquireTime": before.get("acquireTime", now) if same else now,
            "renewTime": now,
            "leaseTransitions": transitions if same else transitions + 1,
        }
