"""Requests that a bridge brings again, whose confirmation was lost: each is carried out once."""

from typing import Any

import pytest
from linked_brokers import Client, Link, Node

from lockkeeper.broker.flow.space import MINIMUM_WINDOW_BYTES
from lockkeeper.broker.settings import (
    BrokerSettings,
    MemoryUsage,
    SchedulerSettings,
    SystemUsage,
)
from lockkeeper.message.destination import parse_destination
from lockkeeper.message.ids import MessageId, ProducerId
from lockkeeper.message.primitives import Value, encode_map

MANAGEMENT = "topic://ActiveMQ.Scheduler.Management"
STATISTICS = "queue://ActiveMQ.Statistics.Broker"
ANSWERS = "queue://ANSWERS"
LIMIT = 1 << 20
FAR = BrokerSettings(
    system_usage=SystemUsage(MemoryUsage(LIMIT)),
    scheduler=SchedulerSettings(enabled=True),
    statistics_queries=True,
)
LATER: dict[str, Value] = {"AMQ_SCHEDULED_DELAY": 3_600_000}


class Pair:
    """Two linked brokers, of which the near one's clients ask the far one."""

    def __init__(self) -> None:
        self.a, self.b = Node("a"), Node("b", settings=FAR)
        self.near, self.far = self.a.client(), self.b.client()
        # A bridge keeps what it forwards to a durable subscriber until it is confirmed.
        self.far.consume(MANAGEMENT, subscription_name="s")
        self.far.consume(STATISTICS)
        self.reader = self.far.consume(ANSWERS)
        self.link = Link(self.a, self.b)
        self.link.pump()

    def again(self) -> None:
        """Make another connection in place of the one that is lost."""
        self.link.cut()
        self.link = Link(self.a, self.b)
        self.link.pump()

    def duplicates(self) -> int:
        """Return how many messages the far end knew that came by the present connection."""
        inbound = self.b.accepted[-1].inbound
        assert inbound is not None
        return inbound.duplicates

    def answers(self) -> int:
        """Return how many answers have come."""
        return len(self.reader.dispatched)

    def jobs(self) -> int:
        found = self.b.broker.registry.find_queue(
            parse_destination("queue://ActiveMQ.Scheduler.Jobs")
        )
        return 0 if found is None else found.depth()


def ask(client: Client, is_persistent: bool, **properties: Value) -> None:
    """Ask for something of the scheduler."""
    marshalled = encode_map(properties)
    client.send(MANAGEMENT, "", persistent=is_persistent, marshalled_properties=marshalled)


def schedule(client: Client, **fields: Any) -> None:
    client.send("queue://LATER", "job", marshalled_properties=encode_map(LATER), **fields)


@pytest.mark.parametrize("is_persistent", [True, False])
def test_a_removal_leaves_the_jobs_that_were_made_since(is_persistent: bool) -> None:
    pair = Pair()
    schedule(pair.far)
    ask(pair.near, is_persistent, AMQ_SCHEDULER_ACTION="REMOVEALL")
    pair.link.pump(holds_back=1)
    assert pair.jobs() == 0
    schedule(pair.far)
    pair.again()
    assert (pair.jobs(), pair.duplicates(), pair.link.bridge.failure) == (1, 1, "")
    # The next one is another request.
    ask(pair.near, is_persistent, AMQ_SCHEDULER_ACTION="REMOVEALL")
    pair.link.pump()
    assert pair.jobs() == 0


@pytest.mark.parametrize("count", [1, 2])
def test_a_removal_by_id_leaves_a_job_of_that_id_that_was_made_since(count: int) -> None:
    pair = Pair()
    message_id = MessageId(ProducerId("ID:client", 1, 1), 7)
    for _ in range(count):
        schedule(pair.far, message_id=message_id)
    ask(pair.near, True, AMQ_SCHEDULER_ACTION="REMOVE", scheduledJobId=str(message_id))
    pair.link.pump(holds_back=1)
    assert pair.jobs() == 0
    schedule(pair.far, message_id=message_id)
    pair.again()
    assert (pair.jobs(), pair.duplicates()) == (1, 1)


@pytest.mark.parametrize("is_persistent", [True, False])
def test_figures_are_told_once(is_persistent: bool) -> None:
    pair = Pair()
    reply_to = parse_destination(ANSWERS)
    pair.near.send(STATISTICS, "", persistent=is_persistent, reply_to=reply_to)
    pair.link.pump(holds_back=1)
    pair.again()
    assert (pair.answers(), pair.duplicates()) == (1, 1)
    pair.near.send(STATISTICS, "", persistent=is_persistent, reply_to=reply_to)
    pair.link.pump()
    assert pair.answers() == 2


def test_what_was_only_begun_is_carried_out_when_it_comes_again() -> None:
    """Who asks by a bridge that is gone may have no answer yet."""
    pair = Pair()
    memory = pair.b.broker.memory
    # Whoever reads may have a little however full the memory is.
    pair.far.send(ANSWERS, "x" * MINIMUM_WINDOW_BYTES)
    memory.used += LIMIT
    pair.near.send(STATISTICS, "", reply_to=parse_destination(ANSWERS))
    pair.link.pump()
    assert pair.answers() == 1
    memory.used -= LIMIT
    pair.again()
    assert (pair.answers(), pair.duplicates()) == (2, 0)
