"""What stays in memory of messages that were read and are gone."""

import tracemalloc

from lockkeeper.message.destination import queue
from lockkeeper.message.ids import MessageId, ProducerId
from lockkeeper.message.openwire import ActiveMQTextMessage, encode
from lockkeeper.message.reader import MessageReader

PRODUCER = ProducerId("ID:producer-1:1", 1, 1)


def test_long_names_of_destinations_do_not_stay_in_memory() -> None:
    bodies = []
    for number in range(100):
        target, message_id = queue(f"{number}." + "x" * 60_000), MessageId(PRODUCER, number)
        message = ActiveMQTextMessage(
            producer_id=PRODUCER, destination=target, message_id=message_id
        )
        bodies.append((target, encode(message, 11)))
    reader = MessageReader()
    tracemalloc.start()
    try:
        for number, (target, body) in enumerate(bodies):
            assert reader.receive(body, 0, len(body), number, bytes(8)).destination == target
        left, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # Not more than the last few: each takes 60 KB and more.
    assert left < 1_000_000
