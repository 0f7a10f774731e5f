"""A broker core over a KahaDB directory, fed with a backlog; prints what it weighs as JSON.

Arguments: the directory, the number of 1 KB messages to send (0: only read what is there).
"""

import json
import select
import sys
import time
from pathlib import Path

from lockkeeper.broker.connections import Connection
from lockkeeper.broker.core import Broker
from lockkeeper.broker.policies.policy import PolicyMap
from lockkeeper.broker.settings import BrokerSettings, MemoryUsage, SystemUsage
from lockkeeper.message.destination import queue
from lockkeeper.message.ids import MessageId, ProducerId
from lockkeeper.message.openwire import ActiveMQBytesMessage, encode
from lockkeeper.message.reader import MessageReader
from lockkeeper.store.kahadb import KahaDBStore

MEMORY_LIMIT = 256 << 20
BATCH = 500


def resident_bytes() -> int:
    """Return the resident memory of this process."""
    status = Path("/proc/self/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) * 1024


def main() -> None:
    directory, count = Path(sys.argv[1]), int(sys.argv[2])
    now = time.time_ns() // 1_000_000
    store = KahaDBStore(directory)
    settings = BrokerSettings(system_usage=SystemUsage(MemoryUsage(MEMORY_LIMIT)))
    broker = Broker(store, "backlog", "ID:backlog", PolicyMap(), settings, now)
    began = time.monotonic()
    broker.recover()
    recovery = time.monotonic() - began
    connection = Connection(broker.dirty)
    broker.connect(connection, "ID:producer-1:1", "producer")
    producer, reader = ProducerId("ID:producer-1:1", 1, 1), MessageReader()
    for number in range(1, count + 1):
        body = encode(
            ActiveMQBytesMessage(
                producer_id=producer,
                destination=queue("BACKLOG"),
                message_id=MessageId(producer, number),
                persistent=True,
                timestamp=now,
                content=b"%09d" % number + bytes(1015),
            )
        )
        sequence = broker.context.next_sequence()
        message = reader.receive(body, 0, len(body), sequence, now.to_bytes(8, "big"))
        broker.send(connection, message, None)
        if number % BATCH == 0:
            write(broker, store)
    region = broker.registry.find(queue("BACKLOG"))
    depth = region.depth() if region is not None else 0
    figures = {"depth": depth, "resident": resident_bytes(), "recovery": recovery}
    store.close()
    print(json.dumps(figures))


def write(broker: Broker, store: KahaDBStore) -> None:
    """Let the store write everything, and the core have its turn."""
    store.flush()
    descriptor = store.fileno()
    assert descriptor is not None
    while store.waiting():
        select.select([descriptor], [], [], 10)
        broker.settle(store.completed())
    broker.tick(time.time_ns() // 1_000_000)


if __name__ == "__main__":
    main()
