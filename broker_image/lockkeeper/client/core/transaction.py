"""A session's transaction: a local one, begun by its first part, or a branch that somebody began.

Its commands are recorded, so that the next broker can be told all of it (openwire.md section
7.8). That cannot be when messages were consumed over the link that is lost, or when there is too
much to record: then it can only be rolled back. Neither is it done for a branch, which other
resources have a part in.
"""

from collections.abc import Iterator
from typing import Protocol

from lockkeeper.client.core.encoding import reencoded
from lockkeeper.client.core.outbox import Outbox
from lockkeeper.client.core.requests import Request
from lockkeeper.client.core.waiting import Moment, Procedure
from lockkeeper.client.errors import (
    IllegalStateError,
    RefusedError,
    TransactionInDoubtError,
    TransactionRolledBackError,
)
from lockkeeper.message.ids import LocalTransactionId, TransactionId, XATransactionId
from lockkeeper.message.openwire import (
    BaseCommand,
    Codec,
    ConnectionId,
    IntegerResponse,
    MessageAck,
    Response,
    TransactionInfo,
    TransactionOperation,
)

RECORDED_BYTES_MAX = 16 * 1024 * 1024
XA_RDONLY = 3
"""A broker's answer to PREPARE: there is nothing to commit, and the branch is over."""


class TransactionOwner(Protocol):
    """The connection of a transaction; see `ConnectionCore`."""

    identifier: ConnectionId
    outbox: Outbox
    generation: int

    def next_number(self) -> int:
        """Return the number of the next command."""

    def next_transaction(self) -> int:
        """Return a number that no other transaction of this connection has."""

    def request(self, command: BaseCommand, *, is_repeatable: bool = True) -> Request:
        """Send a command that wants an answer."""

    def answer(self, request: Request, moment: Moment) -> Procedure[Response]:
        """Wait for the answer to a request."""


class Transaction:
    """Commands of a transacted session since its last commit or rollback."""

    def __init__(self, connection: TransactionOwner) -> None:
        self._connection = connection
        self.identifier: TransactionId | None = None
        self.is_prepared = False
        self._begin: TransactionInfo | None = None
        self._frames: list[bytes] = []
        self._codec: Codec | None = None
        self._size = 0
        self._is_lost = False
        self._ending: Request | None = None

    @property
    def codec(self) -> Codec | None:
        """The codec of the frames recorded so far, None before the first."""
        return self._codec

    @property
    def is_lost(self) -> bool:
        """Tell whether the broker has rolled it back, because the link was lost."""
        return self._is_lost

    @property
    def is_branch(self) -> bool:
        """Tell whether it is a branch of a distributed transaction."""
        return isinstance(self.identifier, XATransactionId)

    @property
    def is_bound(self) -> bool:
        """Tell whether the next broker cannot be told of it: the link must last until its end."""
        if self.identifier is None or self._is_lost:
            return False
        return self.is_branch or self._size > RECORDED_BYTES_MAX

    def begin(self) -> TransactionId:
        """Return the id of the transaction, which begins unless it has."""
        if self.identifier is None:
            connection = self._connection
            number = connection.next_transaction()
            return self._begin_as(LocalTransactionId(connection.identifier.value, number))
        self.check_unprepared()
        return self.identifier

    def begin_branch(self, branch: XATransactionId) -> None:
        """Let what comes be part of a branch."""
        if self.identifier is not None:
            raise IllegalStateError(f"the session has {self.identifier} under way")
        self._begin_as(branch)

    def check_unprepared(self) -> None:
        """Raise an error where nothing more can become part of it."""
        if self.is_prepared:
            raise IllegalStateError(f"{self.identifier} is prepared: commit it or roll it back")

    def _begin_as(self, identifier: TransactionId) -> TransactionId:
        self.identifier = identifier
        info = self._info(TransactionOperation.BEGIN)
        info.command_id = self._connection.next_number()
        self._begin = info
        if self._connection.outbox.codec is not None:
            self._connection.outbox.put_command(info, is_urgent=False)
        return identifier

    def add_message(self, frame: bytes, codec: Codec) -> None:
        """Make the frame of a message part of it; dropped when all is lost anyway."""
        if self._is_lost:
            return
        link = self._connection.outbox
        if self._codec is not None and codec is not self._codec:
            self._reencode(codec)
        self._codec = codec
        self._size += len(frame)
        if self._size <= RECORDED_BYTES_MAX:
            self._frames.append(frame)
        elif link.codec is None:
            self._is_lost = True
            self._frames.clear()
        else:
            self._frames.clear()
        if link.codec is not None:
            link.put_frame(frame, is_urgent=False)

    def _reencode(self, codec: Codec) -> None:
        assert self._codec is not None
        if codec.version != self._codec.version:
            self._frames = [reencoded(each, self._codec, codec) for each in self._frames]

    def recorded(self, codec: Codec) -> Iterator[bytes]:
        """Yield what the next broker must know of it, as frames."""
        is_over = self._ending is not None and self._ending.is_done
        if self.identifier is None or self._is_lost or self.is_prepared or is_over:
            return
        if self._codec is not None:
            self._reencode(codec)
            self._codec = codec
        assert self._begin is not None
        body = codec.encode(self._begin)
        yield len(body).to_bytes(4, "big") + body
        yield from self._frames

    def interrupt(self, has_consumed: bool) -> None:
        """Note that the link is lost; *has_consumed* tells of messages that came by it."""
        if self.identifier is None or self.is_prepared:
            return
        if has_consumed or self.is_branch or self._size > RECORDED_BYTES_MAX:
            self._is_lost = True
            self._frames.clear()

    def commit(self, acks: list[MessageAck], moment: Moment) -> Procedure[None]:
        """Make everything happen. Raises TransactionRolledBackError when it has not."""
        if not acks and self.identifier is None:
            return
        self._acknowledge(acks)
        self._ending = request = self._end(TransactionOperation.COMMIT_ONE_PHASE)
        try:
            yield from self._connection.answer(request, moment)
        except RefusedError as error:
            raise TransactionRolledBackError(f"the broker did not commit: {error}") from error
        finally:
            self._forget()

    def _acknowledge(self, acks: list[MessageAck]) -> None:
        if self._is_lost:
            self._forget()
            raise TransactionRolledBackError("the connection was lost within the transaction")
        identifier = self.begin()
        for ack in acks:
            ack.transaction_id = identifier
            ack.command_id = self._connection.next_number()
            self._connection.outbox.put_command(ack, is_urgent=False)

    def prepare(self, acks: list[MessageAck], moment: Moment) -> Procedure[bool]:
        """Have the broker keep a branch until its outcome is known; False: it had no part.

        Raises TransactionRolledBackError, and TransactionInDoubtError when the broker may have it.
        """
        self._acknowledge(acks)
        self._ending = request = self._end(TransactionOperation.PREPARE)
        try:
            response = yield from self._connection.answer(request, moment)
        except RefusedError as error:
            self.abandon()
            raise TransactionRolledBackError(f"the broker did not prepare: {error}") from error
        except BaseException:
            self._forget()
            raise
        if isinstance(response, IntegerResponse) and response.result == XA_RDONLY:
            self._forget()
            return False
        self.is_prepared = True
        self._frames.clear()
        return True

    def end_prepared(self, operation: TransactionOperation, moment: Moment) -> Procedure[None]:
        """Commit or roll back what is prepared.

        Raises TransactionInDoubtError when it may be done; it is still prepared here then.
        """
        yield from self._connection.answer(self._end(operation), moment)
        self._forget()

    def rollback(self, moment: Moment) -> Procedure[None]:
        """Undo everything; nothing to do when the link is lost: then it is undone already."""
        if self.identifier is None or self._is_lost or self._connection.outbox.codec is None:
            self._forget()
            return
        request = self._end(TransactionOperation.ROLLBACK)
        self._forget()
        try:
            yield from self._connection.answer(request, moment)
        except TransactionInDoubtError:
            return

    def abandon(self) -> None:
        """Undo everything without waiting for an answer; what is prepared stays so."""
        if self.identifier is not None and not self._is_lost and not self.is_prepared:
            outbox = self._connection.outbox
            if outbox.codec is not None:
                info = self._info(TransactionOperation.ROLLBACK)
                info.command_id = self._connection.next_number()
                outbox.put_command(info)
        self._forget()

    def _end(self, operation: TransactionOperation) -> Request:
        return self._connection.request(self._info(operation), is_repeatable=False)

    def _info(self, operation: TransactionOperation) -> TransactionInfo:
        return TransactionInfo(
            connection_id=self._connection.identifier,
            transaction_id=self.identifier,
            type=operation,
        )

    def _forget(self) -> None:
        self.identifier = self._begin = self._codec = self._ending = None
        self._frames.clear()
        self._size = 0
        self._is_lost = self.is_prepared = False
