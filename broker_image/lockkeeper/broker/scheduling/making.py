"""Making of the scheduler: at the start, or as soon as a policy begins to redeliver."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from lockkeeper.broker.errors import BrokerError, InvalidDestinationError
from lockkeeper.broker.scheduling.job import JOBS
from lockkeeper.broker.scheduling.scheduler import Scheduler

if TYPE_CHECKING:
    from lockkeeper.broker.connections import Connection
    from lockkeeper.broker.context import Context
    from lockkeeper.broker.policies.policy import PolicyMap
    from lockkeeper.broker.regions.registry import Registry
    from lockkeeper.broker.requests.answers import Take
    from lockkeeper.broker.requests.requests import Requests
    from lockkeeper.broker.settings import SchedulerSettings
    from lockkeeper.broker.transaction_manager import TransactionManager
    from lockkeeper.message.destination import Destination
    from lockkeeper.message.message import Message


class SchedulerMaker:
    """Has the scheduler of a broker made, if anything may have to be delivered later."""

    def __init__(
        self,
        context: "Context",
        transactions: "TransactionManager",
        registry: "Registry",
        settings: "SchedulerSettings",
        broker_id: str,
        requests: "Requests",
        take: "Take",
        check_later: "Callable[[Message], None]",
        count_blocked: "Callable[[Destination], int]",
    ) -> None:
        """See `Scheduler`."""
        self._context, self._registry = context, registry
        self._is_enabled = settings.enabled
        self._scheduler: Scheduler | None = None
        parts = (context, transactions, registry, settings, broker_id, requests)
        self._parts = (*parts, take, check_later, count_blocked)

    def make(self, policies: "PolicyMap") -> Scheduler | None:
        """Return the scheduler, None if neither the settings nor *policies* want one."""
        if not self._is_enabled and not policies.any_redelivers():
            return None
        self._scheduler = scheduler = Scheduler(*self._parts)
        self._context.deliver_later = scheduler.deliver_later
        return scheduler

    def recover(self) -> None:
        """Have the scheduler, if there is one, know of what the store held."""
        if self._scheduler is not None:
            self._scheduler.recover()

    def prepare_redelivery(self, policies: "PolicyMap") -> None:
        """Be able to redeliver if one of *policies* asks for that. Raises BrokerError."""
        if not policies.any_redelivers() or hasattr(self._context, "deliver_later"):
            return
        jobs = self._registry.find(JOBS)
        if jobs is not None and jobs.depth():
            raise BrokerError(f"redelivery needs a restart: {JOBS} holds messages of before")
        self._registry.forget(JOBS)
        self.make(policies)

    def check_sending(self, connection: "Connection", destination: "Destination") -> None:
        """Refuse what a client sends to the queue of jobs, where no schedule is heeded.

        A job is sent to where it says, whoever has made it. Raises InvalidDestinationError.
        """
        if self._is_enabled or JOBS not in destination.parts():
            return
        if self._scheduler is None or not self._scheduler.sends_by(connection):
            raise InvalidDestinationError(f"{JOBS} is the broker's own: nobody may send there")
