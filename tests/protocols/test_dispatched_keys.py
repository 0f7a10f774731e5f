"""Acknowledgements that name messages by nothing but their ids, known and unknown ones."""

import random
import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from largest_frames import NAME
from served import Served
from test_acknowledgements import CONSUMER, PRODUCER, message

from lockkeeper.broker.subscriptions.consumer import Consumer
from lockkeeper.message import openwire
from lockkeeper.message.destination import queue
from lockkeeper.message.ids import MessageId
from lockkeeper.message.openwire import AckType
from lockkeeper.protocols.openwire import dispatched_keys
from lockkeeper.protocols.openwire.dispatched_keys import DispatchedKeys

WANTED, PART = 500, 50


def served_with(count: int) -> tuple[Served, Consumer]:
    """Return a connection whose consumer holds *count* messages."""
    served = Served().introduced()
    served.tell(
        openwire.ConsumerInfo(consumer_id=CONSUMER, destination=queue("Q"), prefetch_size=32_000)
    )
    for number in range(count):
        served.tell(message(number))
    (consumer,) = served.broker.connections[NAME].consumers.values()
    return served, consumer


def acknowledgement(number: int, kind: AckType = AckType.INDIVIDUAL) -> openwire.MessageAck:
    """Return one that names no broker sequence, as some clients do."""
    return openwire.MessageAck(
        destination=queue("Q"),
        consumer_id=CONSUMER,
        ack_type=kind,
        message_count=1,
        last_message_id=MessageId(PRODUCER, number),
    )


def test_what_is_named_by_its_id_alone_is_acknowledged() -> None:
    served, consumer = served_with(5)
    sequences = list(consumer.dispatched)
    for number in (3, 0, 9, 3):
        served.tell(acknowledgement(number))
    assert list(consumer.dispatched) == [sequences[at] for at in (1, 2, 4)]


def test_unknown_ids_cost_no_more_where_a_consumer_holds_more() -> None:
    def seconds(held: int) -> float:
        served, _ = served_with(held)
        # The least of several: the collector, and whoever else is at work, come in between.
        took = []
        for start in range(1_000_000, 1_000_000 + WANTED, PART):
            began = time.process_time()
            for number in range(start, start + PART):
                served.tell(acknowledgement(number))
            took.append(time.process_time() - began)
        return min(took)

    assert seconds(8_000) < 3 * seconds(500)


def found_by_looking(consumer: Consumer, key: bytes) -> int | None:
    for sequence, reference in consumer.dispatched.items():
        if reference.loaded.key == key:
            return sequence
    return None


@pytest.mark.parametrize("seed", range(20))
def test_the_same_is_found_as_by_looking_through_all(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatched_keys, "_ENDED_MIN", 4)
    chosen = random.Random(seed)
    served, consumer = served_with(0)
    keys = DispatchedKeys()
    known: list[bytes] = [b"unknown"]
    for number in range(120):
        if chosen.random() < 0.5:
            # Some come twice.
            served.tell(message(chosen.randrange(number + 1)))
            known += [each.loaded.key for each in consumer.dispatched.values()][-1:]
        elif consumer.dispatched and chosen.random() < 0.7:
            sequence = chosen.choice(list(consumer.dispatched))
            consumer.consumed([consumer.dispatched.pop(sequence)], None)
        elif consumer.dispatched:
            taken = [consumer.dispatched.pop(each) for each in list(consumer.dispatched)[::2]]
            if chosen.random() < 0.5:
                keys.find(consumer, b"unknown")
            consumer.take_back(taken)
        if chosen.random() < 0.5:
            for key in chosen.sample(known, min(5, len(known))):
                assert keys.find(consumer, key) == found_by_looking(consumer, key)
    assert len(known) > 10
