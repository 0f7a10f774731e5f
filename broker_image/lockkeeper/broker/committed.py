"""Commits on their way: what is left to do once they are durable."""

from collections.abc import Callable

from lockkeeper.broker.transactions import Transaction
from lockkeeper.store.base import Receipt


class Committed:
    """The work that remains when a commit is durable."""

    __slots__ = ("_apply", "_is_applied", "_receipt", "_transaction")

    def __init__(
        self,
        apply: Callable[[Transaction], None],
        transaction: Transaction,
        receipt: Receipt | None,
    ) -> None:
        self._apply = apply
        self._transaction = transaction
        self._receipt = receipt
        self._is_applied = False

    def settle(self) -> None:
        """Make the transaction visible, then answer; what fails may be called again."""
        if not self._is_applied:
            self._apply(self._transaction)
            self._is_applied = True
        if self._receipt is not None:
            self._receipt.settle()
