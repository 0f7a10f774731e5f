"""Making of the scheduler: at the start, or as soon as a policy begins to redeliver."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from lockkeeper.broker.errors import BrokerError
from lockkeeper.broker.scheduling.job import JOBS
from lockkeeper.broker.scheduling.scheduler import Scheduler

if TYPE_CHECKING:
    from lockkeeper.broker.connections import Connection
    from lockkeeper.broker.context import Context
    from lockkeeper.broker.policies.policy import PolicyMap
    from lockkeeper.broker.regions.registry import Registry


class SchedulerMaker:
    """Has the scheduler of a broker made by *build*, if anything may have to be delivered later."""

    def __init__(
        self,
        context: "Context",
        registry: "Registry",
        is_enabled: bool,
        build: Callable[[], Scheduler],
    ) -> None:
        self._context, self._registry = context, registry
        self._is_enabled = is_enabled
        self._build = build
        self._scheduler: Scheduler | None = None

    def make(self, policies: "PolicyMap") -> Scheduler | None:
        """Return the scheduler, None if neither the settings nor *policies* want one."""
        if not self._is_enabled and not policies.any_redelivers():
            return None
        self._scheduler = scheduler = self._build()
        self._context.deliver_later = scheduler.deliver_later
        return scheduler

    def forget(self, connection: "Connection") -> None:
        """End what a connection asked the scheduler for that is gone."""
        if self._scheduler is not None:
            self._scheduler.forget(connection)

    def prepare_redelivery(self, policies: "PolicyMap") -> None:
        """Be able to redeliver if one of *policies* asks for that. Raises BrokerError."""
        if not policies.any_redelivers() or hasattr(self._context, "deliver_later"):
            return
        jobs = self._registry.find(JOBS)
        if jobs is not None and jobs.depth():
            raise BrokerError(f"redelivery needs a restart: {JOBS} holds messages of before")
        self._registry.forget(JOBS)
        self.make(policies)
