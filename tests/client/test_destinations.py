"""What the client learns of a broker's destinations."""

import time
from collections.abc import Callable

import brokers
import pytest
from client_support import Connect

from lockkeeper.client import Connection
from lockkeeper.message.destination import Destination, queue, topic


def holds(condition: Callable[[], bool], seconds: float = 20) -> bool:
    """Tell whether something becomes true in time."""
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.02)
    return condition()


def test_destinations_are_known_as_long_as_they_are_there(
    connection: Connection, queue_name: str
) -> None:
    there, later, news = queue(queue_name), queue(f"{queue_name}.LATER"), topic(queue_name)
    session = connection.session()
    session.producer(there).send("first")
    changes: list[frozenset[Destination]] = []
    with connection.destination_source() as source:
        source.on_change = lambda: changes.append(source.queues)
        assert holds(lambda: there in source.queues)
        temporary = connection.temporary_queue()
        session.producer(later).send("second")
        session.consumer(news)
        assert holds(lambda: later in source.queues and news in source.topics)
        assert holds(lambda: temporary in source.temporary_queues)
        assert not any(each.name.startswith("ActiveMQ.Advisory") for each in source.topics)
        connection.delete_destination(later)
        connection.delete_temporary(temporary)
        assert holds(lambda: later not in source.queues)
        assert holds(lambda: temporary not in source.temporary_queues | source.temporary_topics)
        assert any(later in known for known in changes)
    session.producer(f"{queue_name}.AFTER").send("third")
    assert there in source.queues
    assert queue(f"{queue_name}.AFTER") not in source.queues


@pytest.mark.thorough
def test_the_next_broker_tells_what_it_has(
    our_mortal_broker: brokers.RunningBroker, open_connection: Connect
) -> None:
    connection = open_connection(f"failover:({our_mortal_broker.url})?maxReconnectDelay=50")
    session = connection.session()
    session.producer("KEPT").send("on disk")
    session.consumer("topic://PASSING").close()
    source = connection.destination_source()
    assert holds(lambda: queue("KEPT") in source.queues and topic("PASSING") in source.topics)
    our_mortal_broker.kill()
    our_mortal_broker.start()
    assert holds(lambda: queue("KEPT") in source.queues and not source.topics, 60)
