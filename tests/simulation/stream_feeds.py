"""What must hold for a queue that a stream feeds: each message once, each partition in order."""

from typing import Any

from simulation.stream_clients import LOG

from lockkeeper.broker.core import Broker
from lockkeeper.broker.streams.feeding import FEED_PREFIX
from lockkeeper.broker.streams.filters import EVERYTHING
from lockkeeper.broker.streams.jms import OFFSET, PARTITION
from lockkeeper.message.destination import queue
from lockkeeper.message.rewrite import decoded, properties_of

FED = "fed"


def is_fed(broker: Broker) -> bool:
    """Tell whether the queue has all that the stream has."""
    group, stream = broker.streams.groups.find(FEED_PREFIX + FED), broker.streams.find(LOG)
    if group is None or stream is None:
        return stream is None
    partitions, region = stream.partitions, broker.registry.find_queue(queue(FED))
    if any(group.offsets.get((LOG, each.number), 0) != each.maximum for each in partitions):
        return False
    # What is moved shows once it is on the disk.
    there = 0 if region is None else sum(1 for _ in region.waiting())
    return there >= sum(each.maximum - each.minimum for each in partitions)


def problem_of(broker: Broker) -> str | None:
    """Return what is wrong with the queue once nothing more comes; blocks while it is read."""
    stream, region = broker.streams.find(LOG), broker.registry.find_queue(queue(FED))
    if stream is None:
        return None
    found: dict[int, list[Any]] = {each.number: [] for each in stream.partitions}
    waiting = [] if region is None else list(region.waiting())
    broker.context.store.load(waiting, broker.context.next_sequence(len(waiting) + 1))
    for reference in waiting:
        properties = properties_of(decoded(reference.loaded))
        found[int(str(properties[PARTITION]))].append(int(str(properties[OFFSET])))
    for partition in stream.partitions:
        offsets, there = found[partition.number], _offsets(partition)
        if offsets != there:
            lost, twice = len(set(there) - set(offsets)), len(offsets) - len(set(offsets))
            return (
                f"the queue that partition {partition.number} feeds lacks {lost} messages, has "
                f"{twice} again, or others, or another order"
            )
    return None


def _offsets(partition: Any) -> list[int]:
    offsets: list[int] = []
    at = partition.minimum
    while at < partition.maximum:
        scan = partition.scan(at, 1_000, 1 << 20, EVERYTHING)
        offsets += [record.offset for record in scan.records]
        at = scan.next_offset
    return offsets
