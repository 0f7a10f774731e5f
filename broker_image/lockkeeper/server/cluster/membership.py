"""A broker process as a member of its cluster: what it shows there, from start to end."""

from collections.abc import Callable
from datetime import timedelta

from lockkeeper.server.cluster.api_server import ApiServer
from lockkeeper.server.cluster.lease import LeaseGuard, LeaseTimes
from lockkeeper.server.cluster.pod_environment import PodEnvironment
from lockkeeper.server.cluster.role_label import RoleLabel
from lockkeeper.server.cluster.stale_masters import StaleMasters
from lockkeeper.server.roles import MASTER, STANDBY
from lockkeeper.store.locker import LockLostError
from lockkeeper_api import Broker
from lockkeeper_api.cluster.lease import Lease

STEP_DOWN_SECONDS_MAX = 2.0


class Membership:
    """Shows the process's role on its pod and holds the Lease; outside a cluster it does neither.

    `lease` is None where there is to be none.
    """

    def __init__(
        self, where: PodEnvironment | None, broker: Broker, lost: Callable[[LockLostError], None]
    ) -> None:
        """*lost* is called when the process may be master no longer."""
        self._apis: list[ApiServer] = []
        self._label: RoleLabel | None = None
        self._others: StaleMasters | None = None
        self.lease: LeaseGuard | None = None
        if where is None or where.api_server is None:
            return
        # Each has its connection: what is slow for one must not make the other wait.
        self._apis = [ApiServer(where.api_server) for _ in range(3)]
        label_api, lease_api, others_api = self._apis
        self._label = RoleLabel(label_api, where.pod)
        self._others = StaleMasters(others_api, where.pod, self._check_lease)
        settings = broker.spec.locker.lease
        if settings.enabled:
            path = where.lease_path(broker.metadata.name)
            times = lease_times(settings)
            self.lease = LeaseGuard(lease_api, path, where.pod.holder, times, lost)

    def begin(self) -> None:
        """Say that this is no master, whatever a process in the same pod was before."""
        if self._label is not None:
            self._label.want(STANDBY)
        if self.lease is not None:
            self.lease.start()

    async def settle_epoch(self, last: int) -> int:
        """Return the number of a term that begins now, higher than the *last* of the journal.

        Raises LockLostError when the Lease is lost meanwhile.
        """
        if self.lease is None:
            return last + 1
        await self.lease.raise_epoch(last + 1)
        return self.lease.epoch

    def lead(self) -> None:
        """Say that clients find the master here."""
        if self._label is not None:
            self._label.want(MASTER)
        if self._others is not None:
            self._others.begin()

    def _check_lease(self) -> None:
        """Raise LockLostError when this process may not be the master any more."""
        if self.lease is not None:
            self.lease.check_lock()

    async def step_down(self) -> None:
        """Keep new clients away; waits a moment for the API server."""
        if self._others is not None:
            await self._others.end()
        if self._label is not None:
            self._label.want(STANDBY)
            await self._label.settled(STEP_DOWN_SECONDS_MAX)

    async def leave(self) -> None:
        """Let another process be the master at once, and end what runs here."""
        if self.lease is not None:
            await self.lease.give_back()
        await self.step_down()
        if self._label is not None:
            await self._label.close()
        for api in self._apis:
            await api.close()


def lease_times(settings: Lease) -> LeaseTimes:
    """Return the settings of a Lease in ns."""
    return LeaseTimes(
        *(
            each // timedelta(microseconds=1) * 1000
            for each in (settings.duration, settings.renew_deadline, settings.retry_period)
        )
    )
