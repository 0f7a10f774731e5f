"""Connections cut within frames and between them: nothing is lost, nothing comes twice unsaid."""

import random
from collections import Counter

import brokers
import pytest
from client_support import Connect, left
from relay import Relay

from lockkeeper.client import (
    Acknowledge,
    RedeliveryPolicy,
    TransactionInDoubtError,
    TransactionRolledBackError,
)

OPTIONS = "?initialReconnectDelay=1&maxReconnectDelay=10"
COUNT = 60
# The broker counts each cut as a delivery, of all that it had sent ahead.
FOR_EVER = RedeliveryPolicy(-1, initial_redelivery_delay=0, redelivery_delay=0)
CUTS = 12


def cuts(seed: int, least: int) -> "tuple[random.Random, dict[int, int]]":
    """Return where the first connections are cut, in bytes that the client has sent."""
    chance = random.Random(seed)
    return chance, {number: chance.randint(least, least + 4000) for number in range(CUTS)}


@pytest.mark.parametrize("seed", range(3))
def test_every_send_arrives_once(
    broker: brokers.RunningBroker, open_connection: Connect, queue_name: str, seed: int
) -> None:
    _, limits = cuts(seed, 400)
    with Relay(broker.port, limits.get) as relay:
        connection = open_connection(f"failover:({relay.url}){OPTIONS}")
        producer = connection.session().producer(queue_name)
        for number in range(COUNT):
            producer.send(str(number) + " " * 300)
        sent = [str(body).strip() for body in left(open_connection(broker.url), queue_name)]
        connection.close()
    assert len(relay.sent) > 3
    assert sent == [str(number) for number in range(COUNT)]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "mode", [Acknowledge.AUTO, Acknowledge.CLIENT, Acknowledge.INDIVIDUAL, Acknowledge.TRANSACTED]
)
def test_every_message_is_received(
    broker: brokers.RunningBroker,
    open_connection: Connect,
    queue_name: str,
    mode: Acknowledge,
    seed: int,
) -> None:
    plain = open_connection(broker.url)
    plain.session().producer(queue_name).send_many([str(number) for number in range(COUNT)])
    chance, limits = cuts(seed, 900)
    came: Counter[object] = Counter()
    unsaid = []
    with Relay(broker.port, limits.get) as relay:
        connection = open_connection(f"failover:({relay.url}){OPTIONS}", redelivery=FOR_EVER)
        is_transacted = mode is Acknowledge.TRANSACTED
        session = connection.session(acknowledge=mode, transacted=is_transacted)
        consumer = session.consumer(queue_name, prefetch=chance.choice([1, 5, 1000]))
        while (message := consumer.receive(0.3)) is not None or left(plain, queue_name):
            if message is None:
                continue
            if came[message.body] and not message.redelivered:
                unsaid.append(message.body)
            came[message.body] += 1
            if mode in (Acknowledge.CLIENT, Acknowledge.INDIVIDUAL):
                message.acknowledge()
            elif is_transacted:
                try:
                    session.commit()
                except (TransactionInDoubtError, TransactionRolledBackError):
                    continue
        connection.close()
    assert set(came) == {str(number) for number in range(COUNT)}
    assert unsaid == []
    assert left(plain, queue_name) == []
    if mode is Acknowledge.AUTO:
        assert set(came.values()) == {1}, "what was acknowledged came again"
