"""Transactions: what was sent and consumed under one id, applied together or not at all."""

from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from itertools import chain
from typing import Final, NamedTuple

from lockkeeper.broker.errors import BrokerError
from lockkeeper.broker.regions.route import Route
from lockkeeper.broker.subscriptions.consumer import ConsumedRun, Consumer, Pending
from lockkeeper.message.destination import Destination
from lockkeeper.message.ids import TransactionId
from lockkeeper.states import StateMachine
from lockkeeper.store.base import VOLATILE, Add, Operation, Reference, Remove


class SentRun(NamedTuple):
    """Messages sent one after the other, with where they go at the commit."""

    route: Route
    references: list[Reference]


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

    What it sent and consumed is kept in runs, so that the work of a commit is one of runs. Its
    messages count for `charged` bytes in memory until then. With `is_stale` something that it was
    sent to may have been removed meanwhile. `told` are keys of messages that may be told again;
    with `is_repeated` some were that an earlier commit has stored, or is about to.
    `ending` is called when it is over, whichever its outcome. What it consumed counts as
    acknowledged at `committed_at` (ms since the epoch).
    """

    __slots__ = (
        "_last_route",
        "_last_sent",
        "charged",
        "committed_at",
        "consumed",
        "ending",
        "failure",
        "identifier",
        "is_repeated",
        "is_stale",
        "sent",
        "state",
        "told",
    )

    def __init__(self, identifier: TransactionId, state: TransactionState = OPEN) -> None:
        self.identifier = identifier
        self.sent: list[SentRun] = []
        self.consumed: list[ConsumedRun] = []
        self._last_route: Route | None = None
        self._last_sent: list[Reference] = []
        self.charged = 0
        self.state = state
        self.is_repeated = self.is_stale = False
        self.failure: BrokerError | None = None
        self.told: frozenset[bytes] = frozenset()
        self.ending: Callable[[], None] | None = None
        self.committed_at = 0

    def become(self, event: str) -> None:
        """Go on to the state that *event* leads to; see `TRANSACTIONS`."""
        self.state = TRANSACTIONS.after(self.state, event)
        if self.state is ENDED and self.ending is not None:
            self.ending()

    def commit(self, now: int) -> None:
        """Begin to take effect: what was consumed counts as acknowledged *now*."""
        self.become("commit")
        self.committed_at = now

    def fail(self, error: BrokerError) -> None:
        """Note the first part that was refused."""
        if self.state is OPEN:
            self.become("fail")
            self.failure = error

    def note_told(self) -> None:
        """Note that everything that was sent so far may be told again."""
        sent = (run.references for run in self.sent)
        self.told = frozenset(each.loaded.key for each in chain.from_iterable(sent))

    def send(self, route: Route, references: Sequence[Reference]) -> None:
        """Note messages that go to *route* at the commit."""
        if route is not self._last_route:
            self._last_route, self._last_sent = route, []
            self.sent.append(SentRun(route, self._last_sent))
        self._last_sent.extend(references)

    def consume(
        self, backlog: Pending, references: list[Reference], consumer: Consumer | None
    ) -> None:
        """Note acknowledged messages; the list is the transaction's from now on."""
        if self.consumed:
            last = self.consumed[-1]
            if last.backlog is backlog and last.consumer is consumer:
                last.references.extend(references)
                return
        self.consumed.append(ConsumedRun(backlog, references, consumer))

    def replace_sent(self, sent: list[SentRun]) -> None:
        """Have sent other messages, or to other destinations, than so far."""
        self.sent = sent
        self._last_route = None

    def destinations(self) -> set[Destination]:
        """Return all that it sends to or consumes from."""
        sent = {run.route.destination for run in self.sent}
        return sent | {run.backlog.destination for run in self.consumed}

    def operations(self) -> list[Operation]:
        """Return what the store must know of the transaction, which takes effect now."""
        adds = ((route, route.stored_later(references)) for route, references in self.sent)
        return _adds(adds) + self._removes()

    def promises(self) -> list[Operation]:
        """Return what the store must keep for a transaction that is prepared.

        Who subscribes to a topic until it is committed gets what was sent to it.
        """
        adds: list[tuple[Route, Sequence[Reference]]] = []
        for route, references in self.sent:
            is_lasting = not route.destination.is_temporary
            promised = [
                reference
                for reference in references
                if route.stores(reference) or (is_lasting and reference.loaded.persistent)
            ]
            adds.append((route, promised))
        return _adds(adds) + self._removes()

    def promised(self) -> list[Operation]:
        """Return what the store keeps of a prepared transaction."""
        return _adds((route, _known(references)) for route, references in self.sent) + (
            self._removes()
        )

    def count_takers(self) -> None:
        """Count who needs what was promised, as it takes effect now."""
        for route, references in self.sent:
            promised = _known(references)
            for unwanted in set(promised).difference(route.stored_later(promised)):
                unwanted.holders = 0

    def _removes(self) -> list[Operation]:
        kept = ((run.backlog, run.backlog.kept(run.references)) for run in self.consumed)
        return [
            Remove(backlog.destination, references, backlog.subscription)
            for backlog, references in kept
            if references
        ]

    def is_empty(self) -> bool:
        """Tell whether nothing was sent or consumed."""
        return not self.sent and not self.consumed


def _adds(runs: Iterable[tuple[Route, Sequence[Reference]]]) -> list[Operation]:
    return [Add(route.destination, references) for route, references in runs if references]


def _known(references: list[Reference]) -> list[Reference]:
    """Return the messages that the store was told of."""
    return [reference for reference in references if reference.state != VOLATILE]
