"""One conversation, cut at every boundary of its frames and inside of each, both ways."""

from collections import Counter

import brokers
import pytest
from client_support import Connect, left
from relay import Limits, Relay, frame_ends

from lockkeeper.client import (
    RedeliveryPolicy,
    TransactionInDoubtError,
    TransactionRolledBackError,
    connect,
)

OPTIONS = "?initialReconnectDelay=1&maxReconnectDelay=10"
COUNT = 6
FOR_EVER = RedeliveryPolicy(-1, initial_redelivery_delay=0, redelivery_delay=0)


class Conversation:
    """Sends messages, and moves them to another queue in transactions; keeps books."""

    def __init__(self, queue_name: str) -> None:
        self.queue_name = queue_name
        self.sent: list[str] = []
        self.doubtful: set[str] = set()
        self.committed: Counter[str] = Counter()
        self.unsaid: list[str] = []

    def run(self, url: str, face: Connect) -> None:
        with face(f"failover:({url}){OPTIONS}", redelivery=FOR_EVER) as connection:
            producer = connection.session().producer(self.queue_name)
            for number in range(COUNT):
                producer.send(f"{number}")
                self.sent.append(f"{number}")
            session = connection.session(transacted=True)
            consumer = session.consumer(self.queue_name, prefetch=4)
            moved = session.producer(self.queue_name + ".MOVED")
            came: Counter[str] = Counter()
            while len(set(self.committed) | self.doubtful) < COUNT:
                batch: list[str] = []
                while len(batch) < 2 and (message := consumer.receive(5)) is not None:
                    body = str(message.body)
                    if came[body] and not message.redelivered:
                        self.unsaid.append(body)
                    came[body] += 1
                    batch.append(body)
                    moved.send(body)
                try:
                    session.commit()
                except TransactionInDoubtError:
                    self.doubtful.update(batch)
                except TransactionRolledBackError:
                    continue
                else:
                    self.committed.update(batch)


def places(record: bytes) -> list[int]:
    """Return the end of each frame, and a place inside of each."""
    ends = frame_ends(record)
    inside = [(before + end) // 2 for before, end in zip([0, *ends], ends, strict=False)]
    return sorted({*ends, *inside})


@pytest.mark.thorough
@pytest.mark.parametrize("way", ["to the broker", "to the client"])
def test_a_cut_anywhere_loses_nothing_and_repeats_nothing_unsaid(
    broker: brokers.RunningBroker, face: Connect, queue_name: str, way: str
) -> None:
    whole = Conversation(queue_name)
    with Relay(broker.port) as relay:
        whole.run(relay.url, face)
        record = relay.sent[0] if way == "to the broker" else relay.told[0]
    counts: Counter[str] = Counter()
    with connect(broker.url) as plain:
        for number, place in enumerate(places(bytes(record))):
            name = f"{queue_name}.{number}"
            conversation = Conversation(name)
            limits: Limits = {0: place}.get
            ways = (limits, None) if way == "to the broker" else (None, limits)
            with Relay(broker.port, *ways) as relay:
                conversation.run(relay.url, face)
                counts["cuts"] += len(relay.sent) > 1
            check(conversation, [str(body) for body in left(plain, f"{name}.MOVED")], counts)
            for body in left(plain, name):
                assert body in conversation.doubtful, "what was committed came again"
    print(f"{way}: {dict(counts)}")
    assert counts["cuts"] > 30


def check(conversation: Conversation, moved: list[str], counts: "Counter[str]") -> None:
    """Hold the queue of what was moved against the books."""
    assert conversation.sent == [str(number) for number in range(COUNT)]
    assert conversation.unsaid == []
    assert not [body for body, times in conversation.committed.items() if times > 1]
    doubtful, committed = conversation.doubtful, set(conversation.committed)
    assert committed <= set(moved) <= committed | doubtful
    twice = [body for body, times in Counter(moved).items() if times > 1]
    assert set(twice) <= doubtful
    counts["messages"] += len(moved)
    counts["in doubt"] += len(doubtful)
    counts["twice"] += len(twice)
