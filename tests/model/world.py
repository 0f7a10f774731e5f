"""One broker core over a KahaDB directory, driven by hand: time, writes, syncs, and its end.

Nothing is simulated but the moment at which the disk has synced, so that a test says what is
durable when the broker is killed: a copy of the directory is all that is left of it.
"""

import os
import shutil
from collections.abc import Callable, Iterable
from itertools import count
from pathlib import Path
from typing import Any

from lockkeeper.broker.connections import Connection
from lockkeeper.broker.context import MESSAGE_BYTES
from lockkeeper.broker.core import Broker
from lockkeeper.broker.outputs import Output
from lockkeeper.broker.policies.policy import DestinationPolicy, PolicyEntry, PolicyMap
from lockkeeper.broker.regions.queue import Queue
from lockkeeper.broker.settings import BrokerSettings, MemoryUsage, SystemUsage
from lockkeeper.broker.transactions import Transaction
from lockkeeper.message.destination import queue
from lockkeeper.message.ids import MessageId, ProducerId
from lockkeeper.message.message import Message
from lockkeeper.message.openwire import ActiveMQTextMessage
from lockkeeper.message.primitives import encode_map
from lockkeeper.message.rewrite import encoded
from lockkeeper.store.base import Reference
from lockkeeper.store.kahadb import KahaDBStore

START = 1_700_000_000_000
QUEUE, DEAD = queue("Q"), queue("ActiveMQ.DLQ")
PRODUCER = ProducerId("ID:producer-1:1", 1, 1)
FILE_BYTES = 1 << 14


class DiskByHand:
    """Syncs when it is told to; see `Disk`."""

    def __init__(self) -> None:
        self._event = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self.is_done = False

    def submit(self, descriptor: int) -> None:
        self.is_done = False

    def completed(self) -> bool:
        return self.is_done

    def wait(self) -> None:
        self.is_done = True

    def fileno(self) -> int:
        return self._event

    def close(self) -> None:
        os.close(self._event)


class Noted:
    """A receipt that does something when it is given back."""

    def __init__(self, action: Callable[[], None]) -> None:
        self._action = action

    def settle(self) -> None:
        self._action()


class World:
    """The directory and the broker that has it now; what the broker tells is in `outbox`."""

    def __init__(
        self, directory: Path, policy: DestinationPolicy, memory_limit: int = 1 << 26
    ) -> None:
        self.now = START
        self.outbox: list[Output] = []
        self._directory = directory
        self._policies = PolicyMap([PolicyEntry("Q", None, policy)])
        self._memory_limit = memory_limit
        self._generations = count(1)
        self._names = count(1)
        self._keys: dict[Reference, int] = {}
        self._open()

    def _open(self) -> None:
        self.disk = DiskByHand()
        self.store = KahaDBStore(
            self._directory,
            file_bytes_max=FILE_BYTES,
            disk=lambda descriptor: self.disk,
        )
        settings = BrokerSettings(system_usage=SystemUsage(MemoryUsage(self._memory_limit)))
        self.broker = Broker(self.store, "model", "ID:m", self._policies, settings, self.now)
        self.broker.recover()
        self._keys.clear()

    def restart(self, kill: bool) -> None:
        """Close the broker, or kill it, and open the directory again."""
        self.outbox.clear()
        if kill:
            copy = self._directory.with_name(f"copy-{next(self._generations)}")
            shutil.copytree(self._directory, copy)
            self.store.close()
            shutil.rmtree(self._directory)
            self._directory = copy
        else:
            self.store.close()
        self._open()

    def end(self) -> None:
        self.store.close()

    # Time and the disk

    def tick(self, later: int = 0) -> None:
        self.now += later
        self.broker.tick(self.now)

    def write(self, done: Callable[[], None]) -> None:
        """Begin to write all that waits, unless a write is under way; *done* when it is durable."""
        self.store.remove(QUEUE, Reference(None, 0), self.noting(done))
        self.broker.settle(self.store.flush())

    def sync(self) -> None:
        """Have the disk finish what is under way."""
        self.disk.is_done = True
        self.broker.settle(self.store.completed())

    def noting(self, action: Callable[[], None]) -> Noted:
        """Return a receipt that acts only while the broker lives that it was given to."""
        broker = self.broker
        return Noted(lambda: action() if self.broker is broker else None)

    # Clients

    def connect(self) -> Connection:
        name = f"ID:client-{next(self._names)}-1:1"
        connection = self.broker.open_connection(f"tcp://{name}")
        connection.outbox = self.outbox
        self.broker.connect(connection, name, name)
        return connection

    def message(self, number: int, colour: str | None, **fields: Any) -> Message:
        """Return message *number* as its producer sends it."""
        return encoded(
            ActiveMQTextMessage(
                producer_id=PRODUCER,
                destination=QUEUE,
                message_id=MessageId(PRODUCER, number),
                timestamp=self.now,
                content=b"x" * 200,
                marshalled_properties=encode_map({"colour": colour}) if colour else None,
                **fields,
            ),
            self.broker.context.next_sequence(),
        )

    # What the core holds

    def region(self) -> Queue:
        return self._queue_of(QUEUE)

    def _queue_of(self, destination: Any) -> Queue:
        region = self.broker.registry.open(self.broker.context, destination)
        assert isinstance(region, Queue)
        return region

    def waiting(self) -> list[int]:
        """Return the numbers of what waits, in the queue's order."""
        return [self.number_of(one) for one in self.region().waiting()]

    def dead(self) -> list[int]:
        """Return the numbers of the dead letters."""
        return [self.number_of(one) for one in self._queue_of(DEAD).waiting()]

    def number_of(self, reference: Reference) -> int:
        """Return a message's number; its body is read for that alone when it is only on disk."""
        if reference not in self._keys:
            message = reference.message
            if message is None:
                copy = Reference(None, reference.size, reference.location, reference.state)
                self.store.load([copy], 1)
                message = copy.loaded
            self._keys[reference] = number_of(message)
        return self._keys[reference]

    def memory_used(self) -> int:
        """Return how many bytes the core believes to have in memory."""
        return self.broker.memory.used

    def memory_held(self, transactions: Iterable[Transaction]) -> int:
        """Return how many bytes of messages the core has in memory, those of open works too."""
        region = self.region()
        held = {*region.waiting(), *self._queue_of(DEAD).waiting()}
        for consumer in region.consumers:
            held.update(consumer.dispatched.values())
        for transaction in transactions:
            held.update(*(run.references for run in transaction.sent))
            held.update(*(run.references for run in transaction.consumed))
        return sum(MESSAGE_BYTES + len(one.message.body) for one in held if one.message is not None)


def number_of(message: Message) -> int:
    """Return the number that a message was made with."""
    return int(message.identifier.rpartition(b":")[2])
