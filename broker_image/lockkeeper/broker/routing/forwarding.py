"""Taking a message that goes to several destinations: all copies are stored, or none is."""

from collections.abc import Sequence

from lockkeeper.broker.connections import Connection
from lockkeeper.broker.context import Context
from lockkeeper.broker.errors import BrokerError, TooLargeError
from lockkeeper.broker.flow.control import FlowControl
from lockkeeper.broker.flow.space import lack_of_room
from lockkeeper.broker.routing.router import Router, Target
from lockkeeper.broker.routing.rule import Region
from lockkeeper.broker.transaction_manager import TransactionManager
from lockkeeper.message.message import Message
from lockkeeper.store.base import Add, AtomicBatchTooLargeError, Receipt, Reference

COPIES_BYTES_MAX = 1 << 30


class Forwarding:
    """Carries out what the rules say.

    `dropped` counts copies that were left out because their place had no room, which only
    virtual topics with dropOnResourceLimit allow.
    """

    def __init__(
        self,
        context: Context,
        router: Router,
        flow: FlowControl,
        transactions: TransactionManager,
    ) -> None:
        self._context = context
        self._router = router
        self._flow = flow
        self._transactions = transactions
        self.dropped = 0

    def forward(
        self,
        connection: Connection,
        message: Message,
        receipt: Receipt | None,
        is_admitted: bool,
    ) -> None:
        """Take a message for whoever gets it, unless it has to wait; see `Broker.send`."""
        if connection.reconnected and connection.audit.is_duplicate(message):
            self._transactions.leave_out(connection, message.transaction_id, receipt)
            return
        every = self._router.targets(message)
        targets = self._with_room(message, every)
        self._check_copies(len(targets), len(message.body))
        if not is_admitted:
            regions = [target.region for target in targets]
            if not self._flow.admits(connection, message, receipt, regions):
                return
        self.dropped += len(every) - len(targets)
        copies = [(target.region, self._copy(target, message)) for target in targets]
        if message.transaction_id is not None:
            transaction = self._transactions.find(connection, message.transaction_id)
            for region, copy in copies:
                self._transactions.send(transaction, region, copy)
            if receipt is not None:
                receipt.settle()
            return
        self._accept(copies, receipt)
        if connection.fault_tolerant:
            connection.audit.record(message)

    def check_later(self, message: Message) -> None:
        """Refuse a message that is to come later, if it is too large already. Raises TooLargeError.

        What else is wrong with it shows when it comes.
        """
        if not self._router.forwards(message.destination):
            return
        try:
            targets = self._with_room(message, self._router.targets(message))
        except BrokerError:
            return
        self._check_copies(len(targets), len(message.body))

    def _with_room(self, message: Message, targets: list[Target]) -> list[Target]:
        """Return the targets without those that are left out because they have no room."""
        return [
            target
            for target in targets
            if not target.may_be_dropped
            or lack_of_room(self._context, target.region, message.persistent) is None
        ]

    def _check_copies(self, count: int, size: int) -> None:
        """Raise TooLargeError for copies that the memory cannot have all at once."""
        most = min(COPIES_BYTES_MAX, self._context.memory.limit)
        if count > 1 and count * size > most:
            raise TooLargeError(
                f"{count} copies of {size} bytes are more than {most}, the most that one message "
                f"may become: systemUsage.memoryUsage, and {COPIES_BYTES_MAX} at most"
            )

    def _copy(self, target: Target, message: Message) -> Message:
        if target.copier is None:
            return message
        return target.copier.copy(message, self._context.next_sequence())

    def _accept(self, copies: Sequence[tuple[Region, Message]], receipt: Receipt | None) -> None:
        """Store and admit the copies, in one batch; the receipt waits for all of them."""
        if len(copies) == 1:
            region, message = copies[0]
            region.accept(message, receipt)
            return
        references = [(region, Reference(copy, len(copy.body))) for region, copy in copies]
        adds = [
            Add(region.destination, (reference,))
            for region, reference in references
            if region.stores(reference)
        ]
        if adds:
            try:
                self._context.store.add_together(adds, receipt)
            except AtomicBatchTooLargeError as error:
                for region, reference in references:
                    region.stores_never((reference,))
                raise TooLargeError(str(error)) from error
        elif receipt is not None:
            receipt.settle()
        for region, reference in references:
            region.admit(reference)
