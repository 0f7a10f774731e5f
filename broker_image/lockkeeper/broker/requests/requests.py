"""Requests of clients: carried out in turns, and answered where their askers may send to."""

from collections.abc import Callable
from functools import partial
from typing import TypeAlias

from lockkeeper.broker.access.guard import Guard
from lockkeeper.broker.connections import Connection
from lockkeeper.broker.context import Context
from lockkeeper.broker.errors import InvalidDestinationError, UnanswerableError
from lockkeeper.broker.requests.answers import Answers, Take
from lockkeeper.broker.requests.turns import Request, Settle, Steps, Turns, settle_at_once
from lockkeeper.message.destination import Destination
from lockkeeper.message.message import Message
from lockkeeper.store.base import Receipt

Answer: TypeAlias = Callable[[Answers], Steps]
"""Sends all answers to a request, in steps."""


class Requests:
    """All requests that are not done; each one's receipt is settled when it is.

    What a request is answered with goes where a message of its asker's would go, and is refused
    where that would be. One that came before and is done, as far as is known, is only confirmed:
    bridges send again what was not, and so do clients after a failover.
    """

    def __init__(
        self,
        context: Context,
        guard: Guard,
        take: Take,
        forget_sends: Callable[[Connection], None],
    ) -> None:
        """*take* takes a message, *forget sends* drops what waits for room of a connection."""
        self._context = context
        self._guard = guard
        self._take = take
        self._forget_sends = forget_sends
        self._turns = Turns(context)

    def carry_out(
        self,
        connection: Connection,
        message: Message,
        receipt: Receipt | None,
        steps: Steps,
        settle: Settle,
    ) -> None:
        """Carry out what a message asks for, whatever becomes of the asker. Raises BrokerError.

        *settle* settles the receipt when it is done.
        """
        if not _is_known(connection, message, receipt, settle):
            noting = _noting(connection, message, steps)
            self._turns.add(connection, Request(message, receipt, noting, settle))

    def carry_out_at_once(
        self,
        connection: Connection,
        message: Message,
        receipt: Receipt | None,
        steps: Steps,
        settle: Settle,
    ) -> None:
        """Carry out something short, as `carry_out`, whatever else has been asked for."""
        if _is_known(connection, message, receipt, settle):
            return
        for _ in _noting(connection, message, steps):
            pass
        if receipt is not None:
            settle(receipt)

    def answer(
        self,
        connection: Connection,
        message: Message,
        receipt: Receipt | None,
        reply_to: Destination,
        answer: Answer,
    ) -> None:
        """Answer a message as long as the asker is there. Raises BrokerError.

        What goes wrong with an answer, the asker is told as of the message itself.
        """
        # A temporary queue may have gone with its connection, and the answers with it.
        is_once = not reply_to.is_temporary
        if is_once and _is_known(connection, message, receipt, settle_at_once):
            return
        try:
            self._guard.check_answering(connection, reply_to)
        except InvalidDestinationError as refusal:
            raise UnanswerableError(str(refusal)) from refusal
        steps = self._answer(connection, reply_to, answer)
        if is_once:
            steps = _noting(connection, message, steps)
        request = Request(message, receipt, steps, is_for_asker=True)
        self._turns.add(connection, request)

    def forget(self, connection: Connection) -> None:
        """End the answers to a connection that is gone."""
        self._turns.forget(connection)

    def _answer(self, connection: Connection, reply_to: Destination, answer: Answer) -> Steps:
        answers = Answers(self._context, self._take, partial(self._turns.go_on, connection))
        try:
            yield from answer(answers)
        except InvalidDestinationError:
            # Whoever has its own queue removed wants to read no more.
            if not reply_to.is_temporary:
                raise
        finally:
            self._forget_sends(answers.connection)


def _is_known(
    connection: Connection, message: Message, receipt: Receipt | None, settle: Settle
) -> bool:
    """Tell whether a request came before and is done; its receipt is settled then."""
    if not connection.reconnected or not connection.audit.is_duplicate(message):
        return False
    if receipt is not None:
        settle(receipt)
    return True


def _noting(connection: Connection, message: Message, steps: Steps) -> Steps:
    """Take the steps of a request, and note that it is done."""
    yield from steps
    if connection.fault_tolerant:
        connection.audit.record(message)
