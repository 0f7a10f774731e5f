"""A broker core with streams, driven by hand: commands in, outputs out, time as we say."""

import select
import shutil
from pathlib import Path
from typing import Any, TypeVar

from lockkeeper.broker.connections import Connection
from lockkeeper.broker.core import Broker
from lockkeeper.broker.policies.policy import PolicyMap
from lockkeeper.broker.settings import BrokerSettings
from lockkeeper.broker.streams.drafts import Draft
from lockkeeper.broker.streams.outputs import Appended, ReadResult
from lockkeeper.broker.streams.settings import StreamSettings, StreamsSettings
from lockkeeper.broker.streams.waiting import Read
from lockkeeper.message.segments import SegmentName
from lockkeeper.store.base import Store
from lockkeeper.store.kahadb import KahaDBStore
from lockkeeper.store.kahadb.extracts import EXTRACT_PATTERN
from lockkeeper.store.kahadb.recovery import FindExtract, replay_directory
from lockkeeper.store.segment import MemoryOctets, Segment

START = 1_700_000_000_000
FILE_BYTES = 1 << 18
_T = TypeVar("_T")


class Bench:
    """One core, its store, and the time."""

    def __init__(self, store: Store, settings: StreamsSettings | None = None) -> None:
        self.store = store
        self.settings = settings or StreamsSettings(defaults=StreamSettings(partitions=2))
        self.now = START
        self._clients = 0
        self.begin()

    def begin(self) -> None:
        """Start the broker on its store."""
        settings = BrokerSettings(streams=self.settings)
        policies = PolicyMap()
        self.broker = Broker(self.store, "test", "ID:test", policies, settings, self.now)
        self.broker.recover()
        self.broker.tick(self.now)

    def restart(self) -> None:
        """End the broker in order, and start it again."""
        self.broker.streams.close()
        self.store.close()
        self.begin()

    def connect(self) -> Connection:
        """Return a new client's connection."""
        self._clients += 1
        connection = self.broker.open_connection(f"tcp://client-{self._clients}")
        self.broker.connect(connection, f"client-{self._clients}", f"client-{self._clients}")
        return connection

    def tick(self, milliseconds: int = 0) -> None:
        """Let time pass, and the disk do its work."""
        self.now += milliseconds
        self.broker.tick(self.now)
        self.settle()

    def settle(self) -> None:
        """Write what waits until nothing does."""
        self.broker.settle(self.store.flush())
        self.broker.tick(self.now)

    def append(
        self,
        connection: Connection,
        stream: str,
        *bodies: str | Draft,
        partition: int = 0,
        **options: Any,
    ) -> Appended:
        """Add messages, and return the answer."""
        drafts = [Draft(each.encode()) if isinstance(each, str) else each for each in bodies]
        self.broker.streams.append(connection, "tag", stream, partition, drafts, **options)
        self.settle()
        return only(connection, Appended)

    def read(self, connection: Connection, stream: str, offset: int = 0, **options: Any) -> Any:
        """Read without waiting."""
        partition = options.pop("partition", 0)
        read = Read(stream, partition, offset, **options)
        self.broker.streams.read(connection, "tag", read)
        return only(connection, ReadResult)

    def bodies(self, connection: Connection, stream: str, **options: Any) -> list[str]:
        """Return the bodies of what a read finds."""
        result = self.read(connection, stream, **options)
        return [record.draft.body.decode() for record in result.records]


class DiskBench(Bench):
    """A core whose store is a directory."""

    store: KahaDBStore

    def __init__(
        self, directory: Path, settings: StreamsSettings | None = None, **options: Any
    ) -> None:
        self.directory = directory
        self.name, self.lives = directory.name, 1
        self.options = {"file_bytes_max": FILE_BYTES, **options}
        super().__init__(self._open(), settings)

    def _open(self) -> KahaDBStore:
        return KahaDBStore(self.directory, **self.options)

    def restart(self) -> None:
        """End the broker in order, and start it again."""
        self.broker.streams.close()
        self.store.close()
        self.store = self._open()
        self.begin()

    def crash(self) -> None:
        """Start again from what is on the disk now, as if the process had been killed."""
        left, self.directory = self.directory, self.directory.with_name(f"{self.name}-{self.lives}")
        self.lives += 1
        self.directory.mkdir()
        for pattern in ("db-*.log", EXTRACT_PATTERN):
            for path in left.glob(pattern):
                shutil.copy2(path, self.directory)
        self.store.close()
        self.store = self._open()
        self.begin()

    def extract(self) -> None:
        """Make the extracts of all files that are complete."""
        for _ in self.store.files():
            self.store.maintain(self.now)
            self.store.streams.wait()

    def settle(self) -> None:
        """Wait until all that was handed over is durable."""
        done = _Flag()
        self.broker.context.settle_behind(done)
        self.broker.settle(self.store.flush())
        descriptor = self.store.fileno()
        assert descriptor is not None
        while not done.is_set:
            select.select([descriptor], [], [], 20)
            self.broker.settle(self.store.completed())
        self.broker.tick(self.now)


def replayed(directory: Path, extract_of: FindExtract) -> tuple[list[Any], set[int]]:
    """Return all that a start learns from a journal, and the files of which it read extracts."""
    made: dict[SegmentName, tuple[MemoryOctets, MemoryOctets]] = {}

    def make(name: SegmentName) -> Segment:
        made[name] = MemoryOctets(), MemoryOctets()
        return Segment(name, *made[name])

    found = replay_directory(directory, make, extract_of)
    recovered, references = found.recovered, found.file_references
    segments = {
        each.name: (
            *((each.end, each.bytes, each.first_at, each.last_at, each.bytes_by_file())),
            *(octets.read(0, octets.size) for octets in made[each.name]),
        )
        for each in recovered.segments
    }
    queues = {
        queue: [(each.location, each.size) for each in references]
        for queue, references in recovered.queues.items()
    }
    files = {
        file_id: (entry.live, entry.size, entry.refers, entry.outcomes)
        for file_id, entry in references.files.items()
    }
    destinations = {name: entry.files for name, entry in references.destinations.items()}
    prepared = {name: entry.files for name, entry in references.prepared.items()}
    end = found.tails, found.last_batch, found.last_file_id, found.rollbacks
    books = files, destinations, prepared, references.shadows
    state = [segments, queues, books, end, recovered.last_trace, recovered.epoch]
    return state, found.extracted


class _Flag:
    """A receipt that knows whether it was given back."""

    is_set = False

    def settle(self) -> None:
        self.is_set = True


def taken(connection: Connection) -> list[Any]:
    """Return what a connection was told, and forget it."""
    outputs = list(connection.outbox)
    connection.outbox.clear()
    return outputs


def only(connection: Connection, kind: type[_T]) -> _T:
    """Return the one output of a connection."""
    (output,) = taken(connection)
    assert isinstance(output, kind), output
    return output
