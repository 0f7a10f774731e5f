"""Branches of distributed transactions: what a coordinator asks of a session.

The calls are those of the Python Database API's two-phase commit (PEP 249), what they do is JTA's
XAResource. One branch at a time is a session's own; others are known by their ids alone.
"""

from lockkeeper.client.core.session import SessionCore, SessionOwner
from lockkeeper.client.core.waiting import Moment, Procedure
from lockkeeper.client.errors import IllegalStateError
from lockkeeper.message.ids import XATransactionId
from lockkeeper.message.openwire import (
    DataArrayResponse,
    Response,
    TransactionInfo,
    TransactionOperation,
)


class Branches:
    """The branches that a transacted session has to do with."""

    def __init__(self, connection: SessionOwner, session: SessionCore) -> None:
        self._connection = connection
        self._session = session

    @property
    def own(self) -> XATransactionId | None:
        """The branch that is under way in the session."""
        identifier = self._session.transacted().identifier
        return identifier if isinstance(identifier, XATransactionId) else None

    def begin(self, branch: XATransactionId) -> None:
        """Let what the session sends and consumes from now on be part of a branch."""
        session = self._session
        session.check_open()
        session.check_no_listener()
        if any(consumer.has_delivered for consumer in session.consumers):
            raise IllegalStateError("the session has consumed messages: commit or roll back first")
        session.transacted().begin_branch(branch)

    def prepare(self, moment: Moment) -> Procedure[bool]:
        """Have the broker keep the branch until its outcome is known; False: it had no part."""
        session, transaction = self._session, self._session.transacted()
        self._own()
        transaction.check_unprepared()
        has_part = yield from session.complete(transaction.prepare, moment)
        if not has_part:
            session.settle()
        return has_part

    def commit(self, branch: XATransactionId | None, moment: Moment) -> Procedure[None]:
        """Commit the session's branch, in one phase unless it is prepared, or another one."""
        session, transaction = self._session, self._session.transacted()
        if branch is not None and branch != self.own:
            yield from self._ask(TransactionOperation.COMMIT_TWO_PHASE, branch, moment)
            return
        self._own()
        if transaction.is_prepared:
            yield from transaction.end_prepared(TransactionOperation.COMMIT_TWO_PHASE, moment)
        else:
            yield from session.complete(transaction.commit, moment)
        session.settle()

    def rollback(self, branch: XATransactionId | None, moment: Moment) -> Procedure[None]:
        """Roll back the session's branch, prepared or not, or another one that is prepared."""
        session, transaction = self._session, self._session.transacted()
        if branch is not None and branch != self.own:
            yield from self._ask(TransactionOperation.ROLLBACK, branch, moment)
            return
        self._own()
        if transaction.is_prepared:
            yield from transaction.end_prepared(TransactionOperation.ROLLBACK, moment)
        else:
            yield from transaction.rollback(moment)
        session.redeliver(None, moment)

    def recover(self, moment: Moment) -> Procedure[list[XATransactionId]]:
        """Return all branches that the broker keeps prepared, of whichever client."""
        answer = yield from self._ask(TransactionOperation.RECOVER, None, moment)
        found = answer.data or () if isinstance(answer, DataArrayResponse) else ()
        return [each for each in found if isinstance(each, XATransactionId)]

    def forget(self, branch: XATransactionId, moment: Moment) -> Procedure[None]:
        """Have the broker forget a branch that somebody ended by hand."""
        yield from self._ask(TransactionOperation.FORGET, branch, moment)

    def _own(self) -> None:
        if self.own is None:
            raise IllegalStateError("the session has begun no branch")

    def _ask(
        self, operation: TransactionOperation, branch: XATransactionId | None, moment: Moment
    ) -> Procedure[Response]:
        self._session.transacted()
        info = TransactionInfo(
            connection_id=self._connection.identifier, transaction_id=branch, type=operation
        )
        request = self._connection.request(
            info, is_repeatable=operation is TransactionOperation.RECOVER
        )
        return (yield from self._connection.answer(request, moment))
