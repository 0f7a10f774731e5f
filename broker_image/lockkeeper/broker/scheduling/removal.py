"""Receipts of removed jobs some of which were being written: they end when they are there."""

from typing import TYPE_CHECKING

from lockkeeper.store.base import Receipt, Reference

if TYPE_CHECKING:
    from lockkeeper.broker.context import Context


class Removal:
    """Settles *receipt* when none is unwanted any more of those that were, and that is durable."""

    def __init__(self, context: "Context", unwanted: set[Reference], receipt: Receipt) -> None:
        self._context = context
        self._unwanted = unwanted
        self._coming = frozenset(unwanted)
        self._receipt = receipt

    def settle(self) -> None:
        """See `Receipt`: everything is durable that the store had when this was last called."""
        is_over = self._unwanted.isdisjoint(self._coming)
        self._context.settle_behind(self._receipt if is_over else self)
