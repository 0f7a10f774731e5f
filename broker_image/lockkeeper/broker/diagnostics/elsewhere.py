"""Diagnostics of a message that its queue does not have, as it has still to come there."""

from itertools import chain, islice
from typing import TYPE_CHECKING

from lockkeeper.broker.diagnostics.allowance import Allowance
from lockkeeper.broker.diagnostics.jobs import why_job
from lockkeeper.broker.diagnostics.producers import why_blocked
from lockkeeper.broker.diagnostics.reason import Reason, counted, facts_of_connection
from lockkeeper.broker.diagnostics.transactions import why_in_transaction
from lockkeeper.broker.scheduling.job import JOBS, destination_in
from lockkeeper.broker.scheduling.job_queue import JobQueue

if TYPE_CHECKING:
    from lockkeeper.broker.core import Broker
    from lockkeeper.message.destination import Destination

# So many jobs of one id are looked at for that of a queue.
JOBS_MAX = 100


def why_elsewhere(broker: "Broker", destination: "Destination", message_id: str) -> list[Reason]:
    """Return why a message has not come to a queue yet; empty when nothing is known of it.

    It may be scheduled, also to be redelivered, or wait for room.
    """
    return _why_later(broker, destination, message_id) or why_not_sent(broker, message_id)


def _why_later(broker: "Broker", destination: "Destination", message_id: str) -> list[Reason]:
    jobs = broker.registry.find_queue(JOBS)
    if not isinstance(jobs, JobQueue):
        return []
    known = chain(jobs.named(message_id), jobs.shown_as(message_id))
    allowance = Allowance()
    found = [
        (reference, to)
        for reference in islice(known, JOBS_MAX)
        if (message := allowance.peek(jobs, reference)) is not None
        and (to := destination_in(message)) is not None
    ]
    if not found:
        undecided = why_in_transaction(broker, jobs, message_id)
        return [] if undecided is None else [undecided]
    # Copies of one message may come to several queues, each at its time.
    reference, to = next((each for each in found if destination in each[1].parts()), found[0])
    waits = Reason(
        "comes-later",
        f"it waits in {JOBS} until it is sent to {to}",
        "its time has to come",
        {"destination": str(to)},
    )
    return [waits, why_job(jobs, reference)]


def why_not_sent(broker: "Broker", message_id: str) -> list[Reason]:
    """Return what a message waits for that is sent, but not taken; empty when there is none."""
    found = broker.flow.find(message_id.encode())
    if found is None:
        return []
    position, send = found
    connection = send.connection
    waits = Reason(
        "not-taken",
        f"{connection.address} has sent it to {send.key[0]}, where it waits for room behind "
        f"{counted(position, 'message')}",
        "there has to be room",
        {
            "destination": str(send.key[0]),
            "ahead": position,
            "since": send.since,
            **facts_of_connection(connection),
        },
    )
    lines = broker.flow.blocked()
    line = next(each for each in lines if (each.destination, each.is_persistent) == send.key)
    return [waits, why_blocked(broker, line)]
