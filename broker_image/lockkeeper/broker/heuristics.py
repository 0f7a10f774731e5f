"""Outcomes of prepared transactions that a person decided, because no transaction manager did."""

from lockkeeper.broker.errors import TransactionError
from lockkeeper.message.ids import TransactionId, XATransactionId

# XAException's codes (X/Open CAE C193, chapter 6).
HEURISTIC_COMMIT, HEURISTIC_ROLLBACK, NOT_FOUND = 7, 6, -4
REMEMBERED_MAX = 10_000


class Heuristics:
    """Remembers such outcomes until the manager forgets them, or the broker ends."""

    def __init__(self) -> None:
        self.committed: dict[XATransactionId, bool] = {}

    def note_outcome(self, identifier: XATransactionId, committed: bool) -> None:
        """Remember an outcome; of too many the oldest one is forgotten."""
        self.committed[identifier] = committed
        if len(self.committed) > REMEMBERED_MAX:
            del self.committed[next(iter(self.committed))]

    def check_undecided(self, identifier: TransactionId) -> None:
        """Raise TransactionError, with the heuristic outcome's code, if there is one."""
        if not isinstance(identifier, XATransactionId) or identifier not in self.committed:
            return
        if self.committed[identifier]:
            raise TransactionError(
                f"Transaction {identifier} was committed by hand.", HEURISTIC_COMMIT
            )
        raise TransactionError(
            f"Transaction {identifier} was rolled back by hand.", HEURISTIC_ROLLBACK
        )

    def forget(self, identifier: TransactionId) -> None:
        """Forget an outcome (XAResource.forget). Raises TransactionError when there is none."""
        if not isinstance(identifier, XATransactionId) or identifier not in self.committed:
            raise TransactionError(f"Transaction {identifier} has no heuristic outcome.", NOT_FOUND)
        del self.committed[identifier]
