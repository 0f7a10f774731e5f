"""Consumers: they receive, keep their window open, acknowledge, and take messages back."""

import time
from typing import Protocol, TypeAlias

from lockkeeper.client.acknowledge import Acknowledge, make_ack, poison_cause
from lockkeeper.client.errors import IllegalStateError, MessagingError
from lockkeeper.client.inbox import Inbox
from lockkeeper.client.messages import ReceivedMessage
from lockkeeper.client.redelivery import RedeliveryPolicy
from lockkeeper.client.transport import Transport
from lockkeeper.message.ids import MessageId, TransactionId
from lockkeeper.message.openwire import (
    DELIVERED_NOTHING,
    AckType,
    ConsumerId,
    ConsumerInfo,
    MessageAck,
    MessageDispatch,
    MessagePull,
    RemoveInfo,
)

DO_NOT_WAIT = -1
WAIT_FOR_EVER = 0
PULL_SECONDS = 10.0
"""How long after its time a broker may say that it had no message."""
_REFUSALS = (AckType.EXPIRED, AckType.POISON)
_Taken: TypeAlias = tuple[MessageDispatch, MessageAck | None, int]
"""A dispatch, what to tell the broker of it, and the generation of its link."""


class ConsumerOwner(Protocol):
    """The session of a consumer; see `Session`."""

    def acknowledge(self) -> None:
        """In CLIENT mode, acknowledge everything the session has consumed so far."""

    def consumer_closed(self, consumer: "Consumer") -> None:
        """Let a consumer go, after the transaction that holds its messages."""


class Consumer:
    """Receives messages from one destination; made by `Session.consumer`.

    What was handed out and is not acknowledged is `_delivered`, by identity, in order. All of it
    belongs to one link: when that is lost, the broker sends it again.
    """

    def __init__(
        self,
        session: ConsumerOwner,
        transport: Transport,
        info: ConsumerInfo,
        mode: Acknowledge,
        redelivery: RedeliveryPolicy,
    ) -> None:
        assert info.consumer_id is not None
        self.identifier: ConsumerId = info.consumer_id
        self.mode = mode
        self._session = session
        self._transport = transport
        self._info = info
        self._redelivery = redelivery
        self._inbox = Inbox()
        self._generation = transport.generation
        self._delivered: dict[int, MessageDispatch] = {}
        self._unreported = 0
        self._last_sequence = DELIVERED_NOTHING
        self._is_pulling = False
        self._lost: set[MessageId] = set()
        self._has_lost = False
        self._redelivery_delay = 0.0

    # Receiving

    def receive(self, timeout: float | None = None) -> ReceivedMessage | None:
        """Return the next message; None when none came within *timeout* seconds.

        Without a timeout it waits for ever, with 0 not at all. None also when the consumer or
        the connection is closed meanwhile. Raises ConnectionFailedError when the connection is
        lost for good.
        """
        if self._inbox.is_closed:
            self._inbox.raise_error()
            raise IllegalStateError("the consumer is closed")
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            taken = self._next(deadline)
            if taken is None:
                return None
            dispatch, ack, generation = taken
            if ack is not None:
                self._transport.oneway(ack, generation)
            if dispatch.message is None:
                return None
            if ack is None or ack.ack_type not in _REFUSALS:
                return ReceivedMessage(dispatch, self)

    def _next(self, deadline: float | None) -> _Taken | None:
        """Return the next dispatch; one without a message ends a pull or a browse."""
        inbox = self._inbox
        while True:
            with inbox.changed:
                if inbox.is_closed:
                    inbox.raise_error()
                    return None
                generation = self._generation
                dispatch = inbox.pop()
                if dispatch is not None:
                    self._is_pulling = False
                    return dispatch, self._account(dispatch), generation
                if self._info.prefetch_size or self._is_pulling or not inbox.is_empty:
                    # The end of a pull is told by the broker, unless that takes it too long.
                    patience = PULL_SECONDS if self._is_pulling else 0
                    if not inbox.wait(None if deadline is None else deadline + patience):
                        return None
                    continue
                self._is_pulling = True
            self._pull(deadline, generation)

    def _account(self, dispatch: MessageDispatch) -> MessageAck | None:
        """Note what is handed out, or refused; return what the broker must know of it."""
        message = dispatch.message
        if message is None:
            return None
        if self._is_expired(message.expiration):
            return make_ack(AckType.EXPIRED, self.identifier, [dispatch])
        if self._is_exceeded(dispatch):
            return self._poison(dispatch, "the broker has sent it too often")
        assert message.message_id is not None
        self._last_sequence = message.message_id.broker_sequence
        if self.mode is Acknowledge.AUTO:
            return make_ack(AckType.STANDARD, self.identifier, [dispatch])
        self._delivered[id(dispatch)] = dispatch
        self._unreported += 1
        prefetch = self._info.prefetch_size
        if not prefetch or 2 * self._unreported < prefetch:
            return None
        report = make_ack(AckType.DELIVERED, self.identifier, [dispatch])
        report.message_count, self._unreported = self._unreported, 0
        return report

    def _pull(self, deadline: float | None, generation: int) -> None:
        timeout = WAIT_FOR_EVER
        if deadline is not None:
            left = int((deadline - time.monotonic()) * 1000)
            timeout = left if left > 0 else DO_NOT_WAIT
        pull = MessagePull(
            consumer_id=self.identifier, destination=self._info.destination, timeout=timeout
        )
        self._transport.oneway(pull, generation)

    def _is_expired(self, expiration: int) -> bool:
        return bool(expiration) and not self._info.browser and time.time() * 1000 > expiration

    def _is_exceeded(self, dispatch: MessageDispatch) -> bool:
        return self.mode is Acknowledge.TRANSACTED and self._redelivery.is_exceeded(
            dispatch.redelivery_counter
        )

    # Acknowledging

    def acknowledge(self, dispatch: MessageDispatch) -> None:
        """Acknowledge as the mode says, for the message that came by *dispatch*."""
        if self.mode is Acknowledge.CLIENT:
            self._session.acknowledge()
        elif self.mode is Acknowledge.INDIVIDUAL:
            generation = self._take_delivered(dispatch)
            if generation is not None:
                ack = make_ack(AckType.INDIVIDUAL, self.identifier, [dispatch])
                self._transport.oneway(ack, generation)

    def acknowledge_delivered(self) -> None:
        """Acknowledge everything handed out, outside of any transaction."""
        with self._inbox.changed:
            ack = self.ack_of_delivered(None)
            generation = self._generation
            self.settle_delivered()
        if ack is not None:
            self._transport.oneway(ack, generation)

    def ack_of_delivered(self, transaction_id: TransactionId | None) -> MessageAck | None:
        """Return one acknowledgement of everything handed out, None when there is nothing."""
        with self._inbox.changed:
            delivered = list(self._delivered.values())
        if not delivered:
            return None
        return make_ack(AckType.STANDARD, self.identifier, delivered, transaction_id)

    def settle_delivered(self) -> None:
        """Forget what was handed out: it is acknowledged."""
        with self._inbox.changed:
            self._delivered.clear()
            self._unreported = 0
            self._has_lost = False

    def reject(self, dispatch: MessageDispatch, cause: str | BaseException) -> None:
        """Send what came by *dispatch* to the dead letter queue."""
        if self.mode is Acknowledge.AUTO:
            raise IllegalStateError("in AUTO mode a message is acknowledged when it is received")
        generation = self._take_delivered(dispatch)
        if generation is not None:
            # Within a transaction it travels with what comes next, the commit at the latest.
            buffered = self.mode is Acknowledge.TRANSACTED
            self._transport.oneway(self._poison(dispatch, cause), generation, buffered=buffered)

    def _poison(self, dispatch: MessageDispatch, cause: str | BaseException) -> MessageAck:
        ack = make_ack(AckType.POISON, self.identifier, [dispatch])
        ack.poison_cause = poison_cause(cause)
        return ack

    def _take_delivered(self, dispatch: MessageDispatch) -> int | None:
        """Return the generation of what is to be settled; None if it is, or the link is lost."""
        with self._inbox.changed:
            taken = self._delivered.pop(id(dispatch), None)
            return None if taken is None else self._generation

    # Taking back

    @property
    def has_delivered(self) -> bool:
        """Tell whether something handed out is not acknowledged."""
        return bool(self._delivered)

    @property
    def has_lost(self) -> bool:
        """Tell whether something handed out since the last commit or rollback was lost."""
        return self._has_lost

    def redeliver(self, cause: str | BaseException | None) -> None:
        """Hand everything not acknowledged out again; what came too often is a dead letter."""
        again: list[MessageDispatch] = []
        too_often: list[MessageDispatch] = []
        with self._inbox.changed:
            for dispatch in self._delivered.values():
                dispatch.redelivery_counter += 1
                exceeded = self._redelivery.is_exceeded(dispatch.redelivery_counter)
                (too_often if exceeded else again).append(dispatch)
            self._unreported -= len(self._delivered)
            self._delivered.clear()
            self._has_lost = False
            generation = self._generation
            if again:
                self._redelivery_delay = self._redelivery.delay(
                    again[0].redelivery_counter, self._redelivery_delay
                )
                self._inbox.put_back(again, self._redelivery_delay)
        for dispatch in too_often:
            text = (
                f"Delivery[{dispatch.redelivery_counter}] exceeds redelivery policy limit: "
                f"{self._redelivery.maximum_redeliveries}, cause: {cause}"
            )
            self._transport.oneway(self._poison(dispatch, text), generation)

    # What the connection says

    def put_dispatch(self, dispatch: MessageDispatch) -> None:
        """Take what the broker sends; called by the reading thread."""
        if self._lost and dispatch.message is not None:
            message_id = _without_broker(dispatch.message.message_id)
            if message_id in self._lost:
                self._lost.discard(message_id)
                dispatch.redelivery_counter = max(1, dispatch.redelivery_counter)
        self._inbox.put_dispatch(dispatch)

    def interrupt(self, generation: int) -> None:
        """Forget what came by a link that is lost: the broker sends it again."""
        if self._info.browser:
            self.end(IllegalStateError("the connection was lost while browsing; begin again"))
        with self._inbox.changed:
            self._generation = generation
            self._lost.update(
                _without_broker(dispatch.message.message_id)
                for dispatch in self._delivered.values()
                if dispatch.message is not None
            )
            self._has_lost = self._has_lost or bool(self._delivered)
            self._delivered.clear()
            self._unreported = 0
            self._is_pulling = False
            self._inbox.clear()

    def control(self, prefetch: int, close: bool) -> None:
        """Do what the broker says."""
        if close:
            name = self._info.destination
            self.end(IllegalStateError(f"the broker closed the consumer of {name}"))
        else:
            self._info.prefetch_size = prefetch

    def end(self, error: MessagingError | None) -> None:
        """Give out nothing more."""
        self._inbox.close(error)

    def close(self) -> None:
        """Stop receiving; what was not acknowledged goes to other consumers.

        In a transacted session the broker learns of it when the transaction ends.
        """
        if not self._inbox.is_closed:
            self.end(None)
            self._session.consumer_closed(self)

    def leave(self) -> None:
        """Tell the broker that the consumer is no more."""
        remove = RemoveInfo(object_id=self.identifier, last_delivered_sequence=self._last_sequence)
        self._transport.remove(self.identifier, remove)

    def __enter__(self) -> "Consumer":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _without_broker(message_id: MessageId | None) -> MessageId:
    """Return the id as every broker knows it."""
    assert message_id is not None
    return MessageId(message_id.producer_id, message_id.producer_sequence, 0, message_id.text_view)
