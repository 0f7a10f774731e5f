"""A store that keeps nothing across restarts: for tests and for brokers with persistence off."""

from collections.abc import Sequence

from lockkeeper.message.destination import Destination
from lockkeeper.message.ids import TransactionId, XATransactionId
from lockkeeper.store.base import (
    REMOVED,
    SKIPPED,
    VOLATILE,
    WAITING,
    WRITTEN,
    Add,
    Identity,
    Operation,
    Receipt,
    Recovered,
    RecoveredSubscription,
    Reference,
    Run,
    StoreFile,
    StoreUsage,
    Subscription,
)
from lockkeeper.store.memory_streams import MemoryStreams
from lockkeeper.store.producers import Producers

_Place = tuple[Destination, str]


class MemoryStore:
    """Everything is durable at the next flush, as long as the process lives.

    Closed and opened again, the same object gives back what it held, as a disk would.
    """

    def __init__(self) -> None:
        self._queues: dict[Destination, dict[int, Reference]] = {}
        self._pending: dict[_Place, tuple[Subscription, dict[int, Reference]]] = {}
        self._prepared: dict[XATransactionId, list[Operation]] = {}
        self._producers = Producers()
        self._existing: dict[Destination, None] = {}
        self.streams = MemoryStreams()
        self._waiting: list[Reference] = []
        self._receipts: list[Receipt] = []

    def open(self) -> Recovered:
        """Return what the store held when it was closed."""
        held_back = [
            reference
            for operations in self._prepared.values()
            for operation in operations
            for reference in operation.references
        ]
        consumed = {id(reference) for reference in held_back}
        for reference in held_back:
            reference.held = 0

        def visible(references: dict[int, Reference]) -> list[Reference]:
            for reference in references.values():
                reference.held = 0
            return [kept for kept in references.values() if id(kept) not in consumed]

        return Recovered(
            existing=list(self._existing),
            segments=list(self.streams.segments.values()),
            queues={name: visible(kept) for name, kept in self._queues.items() if kept},
            subscriptions=[
                RecoveredSubscription(subscription, visible(pending))
                for subscription, pending in self._pending.values()
            ],
            prepared={key: list(operations) for key, operations in self._prepared.items()},
            producers=self._producers,
        )

    def close(self) -> None:
        """Count everything handed over as written."""
        self._write()
        self._receipts.clear()

    def add(self, destination: Destination, reference: Reference, receipt: Receipt | None) -> None:
        """See `Store.add`."""
        reference.state = WAITING
        reference.receipt = receipt
        self._waiting.append(reference)
        self._keep(destination, reference)

    def add_run(self, destination: Destination, references: Sequence[Reference]) -> None:
        """See `Store.add_run`."""
        for reference in references:
            self.add(destination, reference, reference.receipt)

    def add_together(self, adds: Sequence[Add], receipt: Receipt | None) -> None:
        """See `Store.add_together`."""
        for destination, references in adds:
            for reference in references:
                self.add(destination, reference, None)
        if receipt is not None:
            self._receipts.append(receipt)

    def _keep(self, destination: Destination, reference: Reference) -> None:
        if destination in self.streams.segments:
            self.streams.keep(destination, reference)
            return
        self._producers.note_key(reference.loaded.key)
        if destination.is_queue:
            self._queues.setdefault(destination, {})[id(reference)] = reference
            return
        for subscription, pending in self._pending.values():
            if subscription.destination == destination:
                pending[id(reference)] = reference

    def remove(
        self,
        destination: Destination,
        reference: Reference,
        receipt: Receipt | None = None,
        subscription: Subscription | None = None,
        skip_unwritten: bool = True,
    ) -> Receipt | None:
        """See `Store.remove`."""
        if receipt is not None:
            self._receipts.append(receipt)
        if reference.state == VOLATILE:
            return None
        if subscription is not None:
            self._pending[_place(subscription)][1].pop(id(reference), None)
            self.release(reference)
            return None
        self._queues.get(destination, {}).pop(id(reference), None)
        if reference.state == WAITING and skip_unwritten:
            reference.state = SKIPPED
            freed, reference.receipt = reference.receipt, None
            return freed
        reference.state = REMOVED if reference.state == WRITTEN else reference.state
        return None

    def release(self, reference: Reference) -> None:
        """See `Store.release`."""
        reference.holders -= 1
        if reference.holders <= 0 and reference.state == WRITTEN:
            reference.state = REMOVED

    def release_run(self, run: Run) -> None:
        """See `Store.release_run`."""

    def remove_run(self, destination: Destination, references: Sequence[Reference]) -> None:
        """See `Store.remove_run`."""
        for reference in references:
            self.remove(destination, reference)

    def commit(
        self, transaction: TransactionId, operations: Sequence[Operation], receipt: Receipt | None
    ) -> None:
        """See `Store.commit`."""
        for operation in operations:
            for reference in operation.references:
                if isinstance(operation, Add):
                    self.add(operation.destination, reference, None)
                else:
                    self.remove(
                        operation.destination,
                        reference,
                        subscription=operation.subscription,
                        skip_unwritten=False,
                    )
        if receipt is not None:
            self._receipts.append(receipt)

    def prepare(
        self, transaction: XATransactionId, operations: Sequence[Operation], receipt: Receipt | None
    ) -> None:
        """See `Store.prepare`."""
        self._prepared[transaction] = list(operations)
        for operation in operations:
            for reference in operation.references if isinstance(operation, Add) else ():
                reference.state = WAITING
                self._waiting.append(reference)
        if receipt is not None:
            self._receipts.append(receipt)

    def commit_prepared(
        self, transaction: XATransactionId, operations: Sequence[Operation], receipt: Receipt | None
    ) -> None:
        """See `Store.commit_prepared`."""
        self._prepared.pop(transaction, None)
        self.commit(transaction, operations, receipt)

    def rollback_prepared(
        self, transaction: XATransactionId, operations: Sequence[Operation], receipt: Receipt | None
    ) -> None:
        """See `Store.rollback_prepared`."""
        self._prepared.pop(transaction, None)
        if receipt is not None:
            self._receipts.append(receipt)

    def subscribe(self, subscription: Subscription, receipt: Receipt | None) -> None:
        """See `Store.subscribe`."""
        self._pending[_place(subscription)] = (subscription, {})
        if receipt is not None:
            self._receipts.append(receipt)

    def unsubscribe(self, subscription: Subscription, receipt: Receipt | None) -> None:
        """See `Store.unsubscribe`."""
        self._pending.pop(_place(subscription), None)
        if receipt is not None:
            self._receipts.append(receipt)

    def remove_destination(self, destination: Destination, receipt: Receipt | None) -> None:
        """See `Store.remove_destination`."""
        self._queues.pop(destination, None)
        self._existing.pop(destination, None)
        for key, (subscription, _) in list(self._pending.items()):
            if subscription.destination == destination:
                del self._pending[key]
        if receipt is not None:
            self._receipts.append(receipt)

    def remember_queue(self, destination: Destination) -> None:
        """See `Store.remember_queue`."""
        self._existing[destination] = None

    def trace(self, text: str) -> None:
        """Drop the line: nothing could read it later."""

    def begin_term(self, epoch: int, now: int, broker: Identity, replica: str) -> None:
        """Do nothing: nobody comes after this one."""

    def load(self, references: Sequence[Reference], next_sequence: int) -> None:
        """Do nothing: bodies never leave the memory."""

    def spool(self, references: Sequence[Reference]) -> int:
        """Return 0: there are no files."""
        return 0

    def unspool(self, references: Sequence[Reference]) -> None:
        """Do nothing: there are no files."""

    def is_spool_full(self) -> bool:
        """Return True: there are no files."""
        return True

    def flush(self) -> Sequence[Receipt]:
        """Return the receipts of everything handed over."""
        self._write()
        receipts, self._receipts = self._receipts, []
        return receipts

    def _write(self) -> None:
        for reference in self._waiting:
            if reference.state == WAITING:
                reference.state = WRITTEN
                if reference.receipt is not None:
                    self._receipts.append(reference.receipt)
                    reference.receipt = None
        self._waiting.clear()

    def waiting(self) -> int:
        """See `Store.waiting`."""
        return 0

    def urgent(self) -> int:
        """See `Store.urgent`."""
        return 0

    def is_behind(self) -> bool:
        """Return False: `flush` leaves nothing."""
        return False

    def completed(self) -> Sequence[Receipt]:
        """Return nothing: `flush` has already."""
        return ()

    def fileno(self) -> int | None:
        """Return None: nothing is ever under way."""
        return None

    def check_full(self) -> None:
        """Never raise: memory is bounded by the core's own limits."""

    def maintain(self, now: int) -> None:
        """Do nothing: there are no files."""

    def usage(self) -> StoreUsage:
        """Return zero files."""
        return StoreUsage(0, 0, len(self._waiting))

    def files(self) -> Sequence[StoreFile]:
        """Return none."""
        return ()

    def file_of(self, reference: Reference) -> int:
        """Return 0: there are no files."""
        return 0


def _place(subscription: Subscription) -> _Place:
    return subscription.destination, subscription.key
