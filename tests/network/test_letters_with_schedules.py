"""Dead letters of messages with a schedule: they go on to the broker that collects them."""

import pytest
from linked_brokers import Client, Link, Node

from lockkeeper.broker.policies.dead_letters import DeadLetterPolicy, DeadLetterStrategy
from lockkeeper.broker.policies.policy import DestinationPolicy, PolicyEntry, PolicyMap
from lockkeeper.broker.routing.composites import CompositeDestination, ForwardTo
from lockkeeper.broker.settings import (
    BrokerSettings,
    MemoryUsage,
    SchedulerSettings,
    SystemUsage,
)
from lockkeeper.message.destination import parse_destination
from lockkeeper.message.primitives import Value, encode_map
from lockkeeper.network.settings import BridgeSettings

LIMIT = 1 << 20
MINUTE = 60_000
MANY = CompositeDestination(
    "Q", forward_to=(ForwardTo(queue="A"), ForwardTo(queue="B")), forward_only=False
)
CIRCLE = (
    CompositeDestination("LOOP", forward_to=(ForwardTo(queue="BACK"),)),
    CompositeDestination("BACK", forward_to=(ForwardTo(queue="LOOP"),)),
)
SCHEDULING = BrokerSettings(scheduler=SchedulerSettings(enabled=True))
REFUSING = BrokerSettings(
    system_usage=SystemUsage(MemoryUsage(LIMIT)),
    scheduler=SchedulerSettings(enabled=True),
    composite_destinations=(MANY, *CIRCLE),
)
EACH_ITS_OWN = PolicyMap(
    [
        PolicyEntry(
            ">",
            None,
            DestinationPolicy(dead_letters=DeadLetterPolicy(DeadLetterStrategy.INDIVIDUAL)),
        )
    ]
)
WIDE = BridgeSettings(message_ttl=4, consumer_ttl=4)
SCHEDULES: dict[str, dict[str, Value]] = {
    "cron": {"AMQ_SCHEDULED_CRON": "* * * * *"},
    "repeat": {
        "AMQ_SCHEDULED_DELAY": 1_000,
        "AMQ_SCHEDULED_PERIOD": 1_000,
        "AMQ_SCHEDULED_REPEAT": 3,
    },
    "delay": {"AMQ_SCHEDULED_DELAY": 1_000},
}
DEAD = "queue://ActiveMQ.DLQ"


def depth(node: Node, name: str) -> int:
    found = node.broker.registry.find_queue(parse_destination(name))
    return 0 if found is None else found.depth() + found.in_flight()


def collecting(b: Node, place: str = DEAD) -> tuple[Node, Client]:
    """Return a broker that collects the dead letters of another one, and who reads them there."""
    hub = Node("hub", settings=SCHEDULING)
    hub.now = b.now
    reader = hub.client()
    reader.consume(place)
    Link(b, hub, WIDE).pump()
    return hub, reader


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_job_that_was_given_up_is_none_where_its_letter_is_collected(schedule: str) -> None:
    b = Node("b", settings=REFUSING)
    b.client().send("queue://LOOP", "x", marshalled_properties=encode_map(SCHEDULES[schedule]))
    b.later(MINUTE)
    assert depth(b, DEAD) == 1
    hub, reader = collecting(b)
    assert (reader.take(), depth(hub, "queue://ActiveMQ.Scheduler.Jobs")) == (["x"], 0)
    hub.later(MINUTE)
    assert reader.take() == []


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_what_was_refused_is_no_job_where_its_letter_is_collected(schedule: str) -> None:
    a, b, text = Node("a"), Node("b", settings=REFUSING), "x" * (LIMIT // 2)
    b.client().consume("queue://Q")
    link = Link(a, b)
    link.pump()
    properties = encode_map(SCHEDULES[schedule])
    a.client().send("queue://Q", text, marshalled_properties=properties)
    link.pump()
    assert depth(b, DEAD) == 1
    hub, reader = collecting(b)
    assert (reader.take(), depth(hub, "queue://ActiveMQ.Scheduler.Jobs")) == ([text], 0)
    hub.later(MINUTE)
    assert reader.take() == []


def test_what_a_schedule_was_refused_for_is_taken_where_its_letter_is_collected() -> None:
    a, b = Node("a"), Node("b", settings=SCHEDULING, policies=EACH_ITS_OWN)
    b.client().consume("queue://Q")
    link = Link(a, b)
    link.pump()
    bad = encode_map({"AMQ_SCHEDULED_CRON": "whenever"})
    a.client().send("queue://Q", "x", marshalled_properties=bad)
    link.pump()
    hub, reader = collecting(b, "queue://ActiveMQ.DLQ.Queue.Q")
    assert (reader.take(), depth(hub, DEAD)) == (["x"], 0)
