"""A directory with files that were compacted opens in ActiveMQ with the same in the same order."""

import random
from pathlib import Path

import brokers
import contents
import pytest
from ports import free_port
from stores import Receipt, reference, settled

from lockkeeper.journal.files import list_data_files
from lockkeeper.message.destination import Destination, queue, topic
from lockkeeper.message.ids import LocalTransactionId, XATransactionId
from lockkeeper.store.base import Add, Recovered, Reference, Remove, Subscription
from lockkeeper.store.kahadb import KahaDBStore
from lockkeeper.store.kahadb.compaction import Settings

pytestmark = [pytest.mark.interop, pytest.mark.slow]

FAST, MOVED, SLOW, DEAD, NEWS = (
    queue("FAST"),
    queue("MOVED"),
    queue("SLOW"),
    queue("DLQ"),
    topic("NEWS"),
)
QUEUES = (FAST, MOVED, SLOW, DEAD)
KEEPS_UP = Subscription("client", "keeps-up", NEWS, None, False)
LAGS = Subscription("client", "lags", NEWS, None, False)
SUBSCRIPTIONS = (KEEPS_UP, LAGS)
FILE_BYTES = 65536
SIZES = (100, 500, 3000)


class Traffic:
    """Mixed traffic into a store whose files are compacted meanwhile."""

    def __init__(self, store: KahaDBStore, seed: int) -> None:
        self.store = store
        self.random = random.Random(seed)
        self.number = 0
        self.waiting: dict[Destination | Subscription, list[Reference]] = {
            name: [] for name in (*QUEUES, KEEPS_UP)
        }
        self.waiting[LAGS] = []
        self.now = 1
        for subscription in SUBSCRIPTIONS:
            store.subscribe(subscription, Receipt())

    def new(self, destination: Destination) -> Reference:
        """Return the next message."""
        self.number += 1
        return reference(self.number, destination, self.random.choice(SIZES))

    def step(self) -> None:
        """Send to each destination, now and then, and consume from it."""
        for name, chance in ((FAST, 1.0), (SLOW, 0.1), (DEAD, 0.01)):
            if self.random.random() < chance:
                one = self.new(name)
                self.store.add(name, one, Receipt())
                self.waiting[name].append(one)
        if self.random.random() < 0.3:
            one = self.new(NEWS)
            one.holders = len(SUBSCRIPTIONS)
            self.store.add(NEWS, one, Receipt())
            for subscription in SUBSCRIPTIONS:
                self.waiting[subscription].append(one)
        if self.random.random() < 0.2:
            transaction = LocalTransactionId("ID:mover-1:1", self.number)
            one = self.new(MOVED)
            taken = Remove(FAST, [self.waiting[FAST].pop(0)])
            self.store.commit(transaction, [taken, Add(MOVED, [one])], Receipt())
            self.waiting[MOVED].append(one)
        self.consume()
        settled(self.store)

    def consume(self) -> None:
        """Let consumers keep up, or lag behind."""
        for name, most in ((FAST, 5), (MOVED, 5), (SLOW, 30)):
            while len(self.waiting[name]) > most:
                one = self.waiting[name].pop(0)
                self.store.remove(name, one, None, None, False)
        for subscription, most in ((KEEPS_UP, 2), (LAGS, 20)):
            while len(self.waiting[subscription]) > most:
                one = self.waiting[subscription].pop(0)
                self.store.remove(NEWS, one, None, subscription)

    def clean_up(self) -> None:
        """Do all that is due, the copy that is being made included."""
        for _ in range(12):
            settled(self.store)
            self.store.maintain(0)
            self.store._compaction.wait()


def keys(references: list[Reference]) -> list[str]:
    """Return the ids of messages."""
    return [one.loaded.key.decode() for one in references]


def recovered_keys(store: KahaDBStore, recovered: Recovered) -> dict[str, list[str]]:
    """Return the ids of all that a start found."""
    found = {}
    for name, several in recovered.queues.items():
        references = list(several)
        store.load(references, 1)
        found[name.name] = keys(references)
    for each in recovered.subscriptions:
        store.load(each.pending, 1)
        found[each.subscription.key] = keys(each.pending)
    return found


@pytest.mark.parametrize("seed", [1, 2])
def test_compacted_files_hold_the_same_for_activemq(seed: int, tmp_path: Path) -> None:
    reason = brokers.missing("activemq")
    if reason:
        pytest.skip(reason)
    data = tmp_path / "kahadb"
    settings = Settings(after_no_gc=1, ignores_store_growth=True)
    store = KahaDBStore(data, file_bytes_max=FILE_BYTES, cleanup_interval_ms=0, compaction=settings)
    store.open()
    traffic = Traffic(store, seed)
    undecided = XATransactionId(1, b"undecided", b"branch")
    held = traffic.new(MOVED)
    for turn in range(1200):
        traffic.step()
        if turn == 600:
            store.prepare(undecided, [Add(MOVED, [held])], Receipt())
        if turn % 100 == 99:
            traffic.clean_up()
    traffic.clean_up()
    short = [file for file in list_data_files(data) if file.size < FILE_BYTES / 2]
    assert len(short) >= 2
    store.close()
    expected = {
        name.key if isinstance(name, Subscription) else name.name: keys(references)
        for name, references in traffic.waiting.items()
        if references
    }
    again = KahaDBStore(data)
    assert recovered_keys(again, again.open()) == expected
    again.close()
    served_by_activemq(tmp_path, expected, undecided)
    back = KahaDBStore(data)
    assert recovered_keys(back, back.open()) == expected
    back.close()


def served_by_activemq(
    tmp_path: Path, expected: dict[str, list[str]], undecided: XATransactionId
) -> None:
    """Hold what ActiveMQ serves against what is expected."""
    port = free_port()
    command = brokers.activemq_command(tmp_path / "theirs", port, tmp_path, FILE_BYTES)
    theirs = brokers.RunningBroker("activemq", port, tmp_path / "theirs", command)
    try:
        for name in QUEUES:
            found = contents.ids(contents.queue_contents(port, name.name))
            assert found == expected.get(name.name, [])
        for each in SUBSCRIPTIONS:
            subscriber = contents.Subscriber(each.client_id, each.name, NEWS.name)
            found = contents.ids(contents.subscription_contents(port, subscriber))
            assert found == expected[each.key]
        assert contents.in_doubt(port) == [undecided]
        theirs.stop()
    finally:
        theirs.kill()
    assert brokers.complaints(theirs) == []
