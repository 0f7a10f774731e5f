"""Transactions: what was sent and consumed under one id, applied together or not at all."""

from enum import Enum
from typing import Final, TypeAlias

from lockkeeper.broker.errors import BrokerError
from lockkeeper.broker.regions.route import Route
from lockkeeper.broker.subscriptions.consumer import Consumer, Pending
from lockkeeper.message.ids import TransactionId
from lockkeeper.states import StateMachine
from lockkeeper.store.base import VOLATILE, Add, Operation, Reference, Remove

# A message sent within a transaction, with where it goes at the commit; and one acknowledged,
# with its consumer, unless a recovery brought it. Plain tuples, as there is one for each message.
Sent: TypeAlias = tuple[Route, Reference]
Consumed: TypeAlias = tuple[Pending, Reference, Consumer | None]


class TransactionState(Enum):
    """State of a transaction."""

    OPEN = "open"
    FAILED = "failed"
    """A part of it was refused: it can only be rolled back."""
    PREPARED = "prepared"
    COMMITTING = "committing"
    """Its commit is being written."""
    ENDED = "ended"


OPEN, FAILED, PREPARED, COMMITTING, ENDED = TransactionState

TRANSACTIONS: Final = StateMachine(
    "a transaction",
    (OPEN, PREPARED),
    {
        OPEN: {
            "prepare": PREPARED,
            "commit": COMMITTING,
            "roll back": ENDED,
            "prepare what is empty": ENDED,
            "fail": FAILED,
        },
        FAILED: {"roll back": ENDED},
        PREPARED: {"commit": COMMITTING, "roll back": ENDED},
        COMMITTING: {"take effect": ENDED},
        ENDED: {},
    },
)
"""Local and XA transactions; a recovery brings prepared ones."""


class Transaction:
    """A transaction; `failure` says why it can only be rolled back.

    With `is_stale` something that it was sent to may have been removed meanwhile.
    """

    __slots__ = ("consumed", "failure", "identifier", "is_stale", "sent", "state")

    def __init__(self, identifier: TransactionId, state: TransactionState = OPEN) -> None:
        self.identifier = identifier
        self.sent: list[Sent] = []
        self.consumed: list[Consumed] = []
        self.state = state
        self.is_stale = False
        self.failure: BrokerError | None = None

    def become(self, event: str) -> None:
        """Go on to the state that *event* leads to; see `TRANSACTIONS`."""
        self.state = TRANSACTIONS.after(self.state, event)

    def fail(self, error: BrokerError) -> None:
        """Note the first part that was refused."""
        if self.state is OPEN:
            self.become("fail")
            self.failure = error

    def operations(self) -> list[Operation]:
        """Return what the store must know of the transaction, which takes effect now."""
        adds: list[Operation] = [
            Add(route.destination, reference)
            for route, reference in self.sent
            if route.stores_later(reference)
        ]
        return adds + self._removes()

    def promises(self) -> list[Operation]:
        """Return what the store must keep for a transaction that is prepared.

        Who subscribes to a topic until it is committed gets what was sent to it.
        """
        adds: list[Operation] = []
        for route, reference in self.sent:
            is_stored = route.stores(reference)
            if is_stored or (reference.loaded.persistent and not route.destination.is_temporary):
                adds.append(Add(route.destination, reference))
        return adds + self._removes()

    def promised(self) -> list[Operation]:
        """Return what the store keeps of a prepared transaction."""
        adds: list[Operation] = [
            Add(route.destination, reference)
            for route, reference in self.sent
            if reference.state != VOLATILE
        ]
        return adds + self._removes()

    def count_takers(self) -> None:
        """Count who needs what was promised, as it takes effect now."""
        for route, reference in self.sent:
            if reference.state != VOLATILE and not route.stores_later(reference):
                reference.holders = 0

    def _removes(self) -> list[Operation]:
        return [
            Remove(backlog.destination, reference, backlog.subscription)
            for backlog, reference, _ in self.consumed
            if backlog.keeps(reference)
        ]

    def consumed_from(self) -> list[tuple[Pending, list[Reference]]]:
        """Return what was consumed by backlog, each in order."""
        several: dict[int, tuple[Pending, list[Reference]]] = {}
        last, references = None, []
        for backlog, reference, _ in self.consumed:
            if backlog is not last:
                last = backlog
                references = several.setdefault(id(backlog), (backlog, []))[1]
            references.append(reference)
        return list(several.values())

    def is_empty(self) -> bool:
        """Tell whether nothing was sent or consumed."""
        return not self.sent and not self.consumed
