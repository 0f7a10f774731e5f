"""Calls of the core that nobody waits for any more: what they have made is not there, either."""

import random
from collections.abc import Callable
from typing import Any

import pytest
from played_broker import PlayedBroker

from lockkeeper.client import Acknowledge, RedeliveryPolicyMap
from lockkeeper.client.core.connection import ConnectionCore
from lockkeeper.client.core.options import ConnectionOptions
from lockkeeper.client.core.producer import Draft
from lockkeeper.client.core.session import SessionCore
from lockkeeper.client.core.waiting import Moment, Procedure
from lockkeeper.message.destination import Kind, queue
from lockkeeper.message.openwire import ConnectionId, ConnectionInfo, ConsumerInfo, ProducerInfo

AT = Moment(100.0, 100.0)
QUEUE = queue("Q")
MAKING: dict[str, Callable[[ConnectionCore, SessionCore], Procedure[Any]]] = {
    "consumer": lambda _, session: session.open_consumer(
        ConsumerInfo(destination=QUEUE, prefetch_size=10), RedeliveryPolicyMap(), AT
    ),
    "producer": lambda _, session: session.open_producer(ProducerInfo(destination=QUEUE), AT),
    "temporary queue": lambda core, _: core.open_temporary(Kind.TEMP_QUEUE, AT),
}


def done(broker: PlayedBroker, procedure: Procedure[Any]) -> Any:
    try:
        next(procedure)
        broker.serve()
        procedure.send(AT)
    except StopIteration as stop:
        return stop.value
    raise AssertionError("it is not done")


@pytest.mark.parametrize("is_answered", [True, False])
@pytest.mark.parametrize("thing", list(MAKING))
def test_what_is_made_for_nobody_is_taken_away_again(thing: str, is_answered: bool) -> None:
    """Also when the answer has come, and only the one who waited for it has gone."""
    info = ConnectionInfo(connection_id=ConnectionId("ID:c:1"), fault_tolerant=True)
    core = ConnectionCore(info, None, ConnectionOptions(), random.Random(1).random)
    broker = PlayedBroker(core)
    opening = core.answer(core.introduce(), AT)
    next(opening)
    broker.link()
    broker.serve()
    session = core.open_session(Acknowledge.AUTO)
    producer = done(broker, session.open_producer(ProducerInfo(destination=QUEUE), AT))
    draft = Draft(24, QUEUE, True, 4, 0, 0, b"", None)
    done(broker, producer.send(draft, AT))
    before = set(broker.made)

    making = MAKING[thing](core, session)
    next(making)
    if is_answered:
        broker.serve()
    making.close()
    broker.serve()
    assert broker.subscribers == {}
    assert broker.made == before
    assert [stored.redeliveries for stored in broker.queue] == [0], "nobody has seen it"
