"""A journal of two runs of a broker, with something of everything."""

from pathlib import Path

from journal_maker import JournalMaker, transaction

from lockkeeper.journal.records import Prepare, Subscription
from lockkeeper.message.destination import queue, topic
from lockkeeper.message.openwire import SubscriptionInfo, encode

NEWS, DLQ = topic("NEWS"), queue("DLQ")


def write_two_runs(directory: Path) -> None:
    """Write two runs of a broker: statistics, a take-over, transactions, a topic, a dead letter."""
    maker = JournalMaker(directory)
    maker.line("event", 0, event="start", broker="b", replica="b-0", epoch=1).flush()
    info = encode(SubscriptionInfo(client_id="c", subscription_name="early", destination=NEWS), 11)
    framed = len(info).to_bytes(4, "big") + info
    maker.record(Subscription(NEWS, "c:early", False, framed))
    for number in range(1, 41):
        maker.add(number, 10 * number).clock(10 * number).flush()
    for number in range(1, 31):
        maker.remove(number).clock(500 + number * number).flush()
    maker.add(50, 1500, NEWS).add(51, 1510, NEWS).remove(50, NEWS, subscription="c:early")
    maker.add(60, 1520, tx=transaction(1)).add(61, 1520, tx=transaction(1)).clock(1520)
    maker.commit(transaction(1)).add(62, 1530, tx=transaction(2)).rollback(transaction(2)).flush()
    counts = {"enqueued": 45, "dequeued": 33, "dispatched": 50, "redelivered": 4}
    latency = [3, 0, 8, 12, 10]
    maker.statistics(2000, **counts, neverWritten=3, depth=12, latency=latency).flush()
    maker.roll().add(63, 2100).clock(2100).flush().remove(31).clock(2150).flush()
    cause = "the lock was free"
    fields = {"broker": "b", "replica": "b-1", "epoch": 2, "cause": cause}
    maker.line("event", 9000, event="takeover", **fields).clock(9000).flush()
    dead = {"properties": {"dlqDeliveryFailureCause": "no stock for ID:maker-1:1:1:1:32, sorry"}}
    maker.remove(32).add(32, 9100, DLQ, original_destination=queue("ORDERS"), **dead).clock(9100)
    maker.remove(60, tx=transaction(3)).record(Prepare(transaction(3))).flush()
    counts = {"enqueued": 4, "dequeued": 1, "deadLettered": 1, "dispatched": 6, "redelivered": 2}
    maker.statistics(12_000, **counts, latency=[0, 0, 1]).clock(12_010).flush()
    maker.line("event", 12_500, event="stop", broker="b", replica="b-1").flush()
