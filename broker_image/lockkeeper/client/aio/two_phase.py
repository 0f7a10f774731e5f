"""Two-phase commit in the asyncio face: `tpc_` calls, for coordinators."""

from lockkeeper.client.aio.driving import drive
from lockkeeper.client.core.branches import Branches
from lockkeeper.client.links.clock import moment
from lockkeeper.client.links.runner import Runner
from lockkeeper.message.ids import XATransactionId as Xid


class TwoPhase:
    """Adds branches of distributed transactions to a transacted session.

    The calls are those of the Python Database API (PEP 249), what they do is JTA's XAResource.
    Between `tpc_prepare` and the outcome the session neither sends nor receives.
    """

    branches: Branches
    runner: Runner

    def tpc_begin(self, branch: Xid) -> None:
        """Let what is sent and consumed from now on be part of a branch.

        Raises IllegalStateError while a transaction is under way or a listener is at work.
        """
        with self.runner.lock:
            self.branches.begin(branch)

    async def tpc_prepare(self, *, timeout: float | None = None) -> bool:
        """Have the broker keep the branch until its outcome is known.

        False: nothing was sent or consumed, and the branch is over. Raises
        TransactionRolledBackError as `commit` does; TransactionInDoubtError when the broker may
        have it, as `tpc_recover` then tells.
        """
        return await drive(self.runner, self.branches.prepare(moment()), timeout)

    async def tpc_commit(self, branch: Xid | None = None, *, timeout: float | None = None) -> None:
        """Commit the branch under way, in one phase unless it is prepared; or one of `tpc_recover`.

        TransactionInDoubtError: it may be done; if it is not, `tpc_recover` still has it. Raises
        RefusedError for what the broker does not know.
        """
        await drive(self.runner, self.branches.commit(branch, moment()), timeout)

    async def tpc_rollback(
        self, branch: Xid | None = None, *, timeout: float | None = None
    ) -> None:
        """Roll back the branch under way, or one of `tpc_recover`; raises as `tpc_commit`."""
        await drive(self.runner, self.branches.rollback(branch, moment()), timeout)

    async def tpc_recover(self, *, timeout: float | None = None) -> list[Xid]:
        """Return all branches that the broker keeps prepared, of whichever client."""
        return await drive(self.runner, self.branches.recover(moment()), timeout)

    async def tpc_forget(self, branch: Xid, *, timeout: float | None = None) -> None:
        """Have the broker forget a branch that somebody ended by hand."""
        await drive(self.runner, self.branches.forget(branch, moment()), timeout)
