"""Data files that tests write record by record, and replay."""

from pathlib import Path

from store_kit import A, Kit

from lockkeeper.journal.batch import EOF_RECORD, build_batch
from lockkeeper.journal.decode import decode_record
from lockkeeper.journal.encode import encode_record
from lockkeeper.journal.files import list_data_files
from lockkeeper.journal.records import AddMessage, Record, RemoveMessage
from lockkeeper.journal.records import Subscription as SubscriptionRecord
from lockkeeper.journal.scan import record_offsets, scan_file
from lockkeeper.message.destination import Destination, topic
from lockkeeper.message.ids import TransactionId
from lockkeeper.store.base import Recovered, Subscription
from lockkeeper.store.kahadb import KahaDBStore
from lockkeeper.store.kahadb.frames import subscription_frame

NEWS = topic("NEWS")
KEY = "ID:producer-1:1:1:1:"


class Journal:
    """A directory, its data files written by hand, and what a store reads back."""

    def __init__(self, directory: Path, kit: Kit) -> None:
        self.directory = directory
        self.kit = kit
        directory.mkdir()

    def add(
        self,
        number: int,
        destination: Destination = A,
        transaction: TransactionId | None = None,
        text: int | None = None,
    ) -> AddMessage:
        body = self.kit.reference(number if text is None else text, destination).loaded.body
        frame = len(body).to_bytes(4, "big") + body
        return AddMessage(destination, f"{KEY}{number}", frame, transaction=transaction)

    def remove(
        self,
        number: int,
        destination: Destination = A,
        key: str | None = None,
        transaction: TransactionId | None = None,
    ) -> RemoveMessage:
        return RemoveMessage(destination, f"{KEY}{number}", None, key, transaction)

    def subscribe(
        self, name: str, destination: Destination = NEWS, retroactive: bool = False
    ) -> SubscriptionRecord:
        subscription = Subscription("client", name, destination, None, False)
        frame = subscription_frame(subscription)
        return SubscriptionRecord(destination, subscription.key, retroactive, frame)

    def write(
        self, *records: Record | bytes, file_id: int = 1, rest: bytes = EOF_RECORD
    ) -> list[bytes]:
        """Write a file with a batch per record; records may be bytes."""
        encoded = [one if isinstance(one, bytes) else encode_record(one) for one in records]
        batches = [build_batch(one)[: -len(EOF_RECORD)] for one in encoded]
        (self.directory / f"db-{file_id}.log").write_bytes(b"".join(batches) + rest)
        return batches

    def open(self) -> Recovered:
        self.store = KahaDBStore(self.directory, clock=self.kit.clock, file_bytes_max=1 << 16)
        return self.store.open()

    def replay(self, *records: Record | bytes) -> dict[str, list[int]]:
        """Return the numbers in each queue, and pending for each subscription."""
        if records:
            self.write(*records)
        recovered = self.open()
        found = {
            destination.name: self.kit.numbers(self.store, references)
            for destination, references in recovered.queues.items()
        }
        for entry in recovered.subscriptions:
            found[entry.subscription.name] = self.kit.numbers(self.store, entry.pending)
        self.recovered = recovered
        self.store.close()
        return found

    def records(self) -> list[tuple[int, Record]]:
        """Return what the journal holds now: (file id, record)."""
        found: list[tuple[int, Record]] = []
        for file in list_data_files(self.directory):
            data = file.path.read_bytes()
            scan = scan_file(data, file.path.name)
            scan.require_whole()
            for batch in scan.batches:
                for offset, _ in record_offsets(data, batch):
                    found.append((file.file_id, decode_record(data, offset)))
        return found
