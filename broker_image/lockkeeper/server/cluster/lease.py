"""The Lease as a locker of the journal: held besides the file lock, renewed all the time.

A file lock on a network can be lost without its holder's knowledge. The Lease cannot be held by
two: writes to it carry the version that was read, and the API server refuses all but the first.
A holder that could not renew it in time stops by its own clock, before anyone else may take it.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from lockkeeper.server.cluster.api_server import CONFLICT, ApiServer, ApiServerError
from lockkeeper.server.cluster.election import (
    SECOND_NS,
    Election,
    LeaseRecord,
    freed,
    read_lease,
    renewed,
    written_lease,
)
from lockkeeper.server.cluster.pod_environment import now_text
from lockkeeper.store.locker import Deadline, LockLostError, boot_time

logger = logging.getLogger(__name__)

RELEASE_SECONDS_MAX = 2.0
SHORT_SECONDS = 0.2
"""Time between two attempts while something depends on the next one."""
ATTEMPTS_PER_DEADLINE = 4


@dataclass(frozen=True, slots=True)
class LeaseTimes:
    """The settings of `spec.locker.lease`, in ns."""

    duration: int
    renew_deadline: int
    retry_period: int


class LeaseGuard:
    """One process's part in the Lease at *path*; `store.kahadb.Locker` is its interface."""

    def __init__(
        self,
        api: ApiServer,
        path: str,
        identity: str,
        times: LeaseTimes,
        lost: Callable[[LockLostError], None],
    ) -> None:
        """*lost* is called once when the Lease was held and is no more."""
        self.deadline = Deadline()
        self._api = api
        self._path = path
        self._times = times
        self._lost = lost
        self._identity = identity
        self._election = Election(identity, times.duration)
        self._object: dict[str, Any] = {}
        self._own: LeaseRecord | None = None
        self._is_wanted = False
        self._is_over = False
        self._renewing = asyncio.Lock()
        self._trouble = ""
        self._wake = asyncio.Event()
        self._seen = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to look at the Lease: who has seen the holder's last sign takes over sooner."""
        self._task = asyncio.create_task(self._keep(), name="lease")

    # The interface of a locker

    def try_acquire(self, now: int) -> bool:
        """See `Locker.try_acquire`; the first call only tells that it is wanted."""
        if not self._is_wanted:
            self._is_wanted = True
            self._wake.set()
        return self._own is not None and not self._is_over

    def withdraw(self) -> None:
        """Want it no more for now, and give it back if it is held: the file lock is another's.

        Who had only the Lease would keep the one who has only the lock from serving, for ever.
        """
        if self._is_wanted:
            self._is_wanted = False
            self._wake.set()

    def check_lock(self) -> None:
        """See `Locker.check_lock`."""
        self.deadline.check()

    def release(self) -> None:
        """See `Locker.release`: nothing is written any more; `give_back` tells the others."""
        self._is_wanted = False
        self._is_over = True
        self.deadline.lapse("the lease was given back")

    # What there is to a Lease besides

    @property
    def epoch(self) -> int:
        """The number of this process's term."""
        return 0 if self._own is None else self._own.epoch

    async def first_look(self, seconds: float) -> None:
        """Wait until it was seen, *seconds* at most."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._seen.wait()

    @property
    def is_free(self) -> bool:
        """True if nobody else holds the Lease, so that this process can take it."""
        return self.is_watched and self._election.may_take(boot_time())

    @property
    def is_watched(self) -> bool:
        """True if this process can read the Lease, so that it could take it."""
        return not self._trouble and self._election.silence(boot_time()) is not None

    async def raise_epoch(self, epoch: int) -> None:
        """Have the Lease tell *epoch*, which the journal asks for. Raises LockLostError."""
        while self.epoch < epoch:
            self.deadline.check()
            with contextlib.suppress(ApiServerError, OSError):
                await self._renew(epoch)
                return
            await asyncio.sleep(self._times.retry_period / SECOND_NS)

    async def give_back(self) -> None:
        """Stop looking at it, and let another take it at once if it was held."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        self.release()
        own, self._own = self._own, None
        if own is None:
            return
        try:
            async with asyncio.timeout(RELEASE_SECONDS_MAX):
                await self._free(own)
        except (ApiServerError, OSError, TimeoutError) as error:
            logger.warning("the lease is not given back, others have to wait: %s", error)

    async def _free(self, own: LeaseRecord) -> None:
        """Say that nobody holds the Lease, if it is still *own*."""
        free = freed(own, now_text())
        while not await self._put_record(free):
            if not self._election.is_still(await self._fetch_record(), own):
                return

    def view(self) -> dict[str, Any]:
        """Return what the status tells of it; `renewedAgo` is in ms, by this machine's clock."""
        seen, silence = self._election.seen, self._election.silence(boot_time())
        return {
            "holder": seen.holder or None,
            "epoch": seen.epoch or None,
            "renewedAgo": None if silence is None else silence // 1_000_000,
            "trouble": self._trouble or None,
        }

    # The task

    async def _keep(self) -> None:
        """Renew the Lease while it is held; else look at it, and take it when that may be."""
        while not self._is_over:
            try:
                await self._take_part()
                self._trouble = ""
            except (ApiServerError, OSError) as error:
                self._note_trouble(str(error))
            except LockLostError as error:
                if not self._is_over:
                    self._lose(str(error))
                return
            await self._pause()

    async def _take_part(self) -> None:
        """Do once what is to be done all the time."""
        own = self._own
        if own is None:
            await self._observe_and_take()
        elif self._is_wanted:
            await self._renew()
        else:
            self._own = None
            self.deadline.lapse("the lease was given back")
            await self._free(own)

    async def _pause(self) -> None:
        """Wait for the next look.

        The wait is short with the file lock in hand, and for a holder without an answer, or
        without the lock.
        """
        seconds = self._times.retry_period / SECOND_NS
        if self._is_wanted == (self._own is None) or (self._own is not None and self._trouble):
            seconds = min(seconds, SHORT_SECONDS)
        self._wake.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._wake.wait()

    def _note_trouble(self, trouble: str) -> None:
        if not self._trouble:
            logger.warning("the lease is out of reach: %s", trouble)
        self._trouble = trouble

    async def _fetch_record(self) -> LeaseRecord:
        """Return what the Lease says now."""
        self._object = await self._api.get(self._path, self._patience)
        record = read_lease(self._object)
        self._election.observe(record, boot_time())
        return record

    @property
    def _patience(self) -> float:
        """How long to wait for one answer, in seconds."""
        times = self._times
        share = max(times.retry_period, times.renew_deadline // ATTEMPTS_PER_DEADLINE)
        return share / SECOND_NS

    async def _observe_and_take(self) -> None:
        found = await self._fetch_record()
        self._seen.set()
        if found.holder == self._identity and not self._is_wanted:
            # An earlier process in this pod, which is dead: nobody needs to wait for it.
            await self._put_record(freed(found, now_text()))
        if not self._is_wanted or not self._election.may_take(boot_time()):
            return
        before = self._election.seen
        began = boot_time()
        claim = self._election.claim(0, now_text())
        if not await self._put_record(claim):
            return
        reason = f"the lease was not renewed for {self._times.renew_deadline / SECOND_NS:g} s"
        self.deadline.begin(began + self._times.renew_deadline, reason)
        self._own = claim
        whose = f", which was {before.holder}'s" if before.holder else ""
        logger.info("holds the lease%s; epoch %d", whose, claim.epoch)

    async def _renew(self, epoch: int = 0) -> None:
        """Tell that this process is still there. Raises LockLostError when it is too late."""
        async with self._renewing:
            own = self._own
            if own is None:
                self.deadline.check()
                return
            wanted = renewed(own, now_text(), epoch)
            while True:
                began = boot_time()
                self.deadline.check()
                if await self._put_record(wanted):
                    break
                found = await self._fetch_record()
                # An answer that got lost may have been that of a write that was carried out.
                if not any(self._election.is_still(found, each) for each in (own, wanted)):
                    holder = found.holder or "nobody"
                    raise LockLostError(f"the lease is {holder}'s now, with epoch {found.epoch}")
                wanted = replace(wanted, uid=found.uid)
            self._own = wanted
            self.deadline.extend(began + self._times.renew_deadline)

    async def _put_record(self, record: LeaseRecord) -> bool:
        """Write *record* where the Lease is as it was read; tells whether it was."""
        value = written_lease(self._object, record)
        try:
            self._object = await self._api.replace(self._path, value, self._patience)
        except ApiServerError as error:
            if error.code == CONFLICT:
                return False
            raise
        self._election.observe(record, boot_time())
        return True

    def _lose(self, reason: str) -> None:
        self._is_over = True
        self._own = None
        self.deadline.lapse(reason)
        logger.critical("this master must stop: %s", reason)
        self._lost(LockLostError(reason))
