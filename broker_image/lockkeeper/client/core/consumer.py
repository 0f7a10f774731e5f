"""Consumers: what they hand out, and what the broker and the books learn of it."""

import math
from typing import Protocol

from lockkeeper.client.core.acknowledge import Acknowledge, ack_frame, cause_text, make_ack, runs
from lockkeeper.client.core.books import BatchBook, Book, EachBook, KeptBook
from lockkeeper.client.core.delivery import SPLICED_VERSION_MIN, Delivery
from lockkeeper.client.core.duplicates import Settled
from lockkeeper.client.core.inbox import Inbox, PriorityInbox
from lockkeeper.client.core.options import ConnectionOptions
from lockkeeper.client.core.outbox import Outbox
from lockkeeper.client.core.redelivery import RedeliveryPolicy, RedeliveryPolicyMap
from lockkeeper.client.core.waiting import Moment, Procedure, Wait, WaitLine, earliest
from lockkeeper.client.errors import IllegalStateError, MessagingError
from lockkeeper.message.openwire import (
    DELIVERED_NOTHING,
    AckType,
    BaseCommand,
    ConsumerId,
    ConsumerInfo,
    MessageAck,
    MessagePull,
    RemoveInfo,
    encode,
)

DO_NOT_WAIT = -1
WAIT_FOR_EVER = 0
PULL_SECONDS_MAX = float(1 << 40)
"""Who waits longer than this waits for ever: brokers add ms of 64 bits to those of the calendar."""
PULL_SECONDS = 10.0
"""How long after its time a broker may say that it had no message."""
BATCH_SHARE, OPTIMIZED_SHARE = 0.5, 0.65
_SETTLING = (AckType.STANDARD, AckType.INDIVIDUAL)


class ConsumerOwner(Protocol):
    """The connection of a consumer; see `ConnectionCore`."""

    outbox: Outbox
    generation: int
    settled: Settled
    options: ConnectionOptions

    def next_number(self) -> int:
        """Return the number of the next command."""

    def post(self, command: BaseCommand) -> None:
        """Send a command that wants no answer, if a broker is there."""

    def chance(self) -> float:
        """Return a random number from 0 up to 1."""


class ConsumerCore:
    """One consumer; `line` is woken whenever it may have something new to say."""

    def __init__(
        self,
        connection: ConsumerOwner,
        info: ConsumerInfo,
        mode: Acknowledge,
        policies: RedeliveryPolicyMap,
    ) -> None:
        assert info.consumer_id is not None
        self.identifier: ConsumerId = info.consumer_id
        self.info = info
        self.mode = mode
        self.line = WaitLine()
        self.is_closed = False
        self.has_lost = False
        self.error: MessagingError | None = None
        self._connection = connection
        self._policies = policies
        self._wire = b"\x01" + encode(self.identifier)
        assert info.destination is not None
        # Of the queues a consumer reads, each message is for one consumer only.
        by_name = info.subscription_name or self.identifier
        self._subscription = by_name if info.destination.is_topic else None
        prioritised = connection.options.message_priority_supported
        self._inbox = PriorityInbox() if prioritised else Inbox()
        self.book = self._make_book()
        self._arrivals = 0
        # What the broker sent last of all that was handed out, also where it comes again.
        self._last_sequence, self._last_arrival = DELIVERED_NOTHING, 0
        self._held_until = 0.0
        self._redelivery_delay = 0.0
        self._is_pulling = False
        self._pull_ends = 0.0
        self._lost: set[object] = set()

    def _make_book(self) -> Book:
        options, info = self._connection.options, self.info
        if self.mode is Acknowledge.AUTO and info.optimized_acknowledge:
            return BatchBook(self._send_acks, OPTIMIZED_SHARE, options.optimize_acknowledge_timeout)
        assert info.destination is not None
        if self.mode is Acknowledge.DUPS_OK and info.destination.is_topic:
            return BatchBook(self._send_acks, BATCH_SHARE, None)
        if self.mode in (Acknowledge.AUTO, Acknowledge.DUPS_OK):
            return EachBook(self._send_acks)
        return KeptBook(self._send_acks)

    # Receiving

    def receive(self, timeout: float | None, moment: Moment) -> Procedure[Delivery | None]:
        """Return the next delivery, None when there is none within *timeout* seconds.

        Without a timeout it waits for ever, with 0 not at all. None also when the consumer is
        closed meanwhile. Raises what ended the connection.
        """
        if self.is_closed:
            self.raise_error()
            raise IllegalStateError("the consumer is closed")
        deadline = None if timeout is None else moment.now + timeout
        while True:
            delivery = self.take_delivery(moment)
            if delivery is not None:
                if delivery.has_message:
                    return delivery
                if self.info.browser or (deadline is not None and moment.now >= deadline):
                    return None
                # It ends the pull of a call that was cancelled: this one begins its own.
            if self.is_closed:
                self.raise_error()
                return None
            is_held = len(self._inbox) > 0
            if not (self.info.prefetch_size or self._is_pulling or is_held):
                self._pull(deadline, moment.now)
            until = None if deadline is None else deadline + self._patience(deadline)
            if until is not None and moment.now >= until:
                return None
            moment = yield Wait(self.line, earliest(until, self._held_until if is_held else None))

    def take_arrived(self, moment: Moment) -> Delivery | None:
        """Return the next message if it has arrived already; leave the end of a browse there."""
        if not self.info.prefetch_size or self.info.browser:
            return None
        return self.take_delivery(moment)

    def arrival(self, moment: Moment) -> Procedure[None]:
        """Wait until a listener has something to do: a message is there, or the end.

        It may be woken for nothing.
        """
        while not self.is_closed:
            is_waiting = len(self._inbox) > 0
            if is_waiting and moment.now >= self._held_until:
                return
            if not (self.info.prefetch_size or self._is_pulling or is_waiting):
                self._pull(None, moment.now)
            moment = yield Wait(self.line, self._held_until if is_waiting else None)
            if not is_waiting and not len(self._inbox):
                return

    def take_delivery(self, moment: Moment, is_held: bool = False) -> Delivery | None:
        """Return the next delivery that may be handed out now, None when there is none.

        One without a message ends a pull or a browse; one that *is_held* is settled by `finish`
        or `fail`.
        """
        inbox = self._inbox
        while len(inbox):
            if self._held_until:
                if moment.now < self._held_until:
                    return None
                self._held_until = 0.0
            delivery = inbox.pop()
            self._is_pulling = False
            if not delivery.has_message:
                return delivery
            if delivery.arrival > self._last_arrival:
                self._last_arrival = delivery.arrival
                self._last_sequence = delivery.broker_sequence
            if self._is_fit(delivery, moment.wall):
                self.book.hand_out(delivery, self.info.prefetch_size, moment.now, is_held)
                return delivery
        return None

    def _is_fit(self, delivery: Delivery, wall: float) -> bool:
        """Tell whether a delivery is handed out; if not, the broker learns why."""
        if delivery.expiration and not self.info.browser and wall * 1000 > delivery.expiration:
            self._send_ack(AckType.EXPIRED, [delivery])
            return False
        if delivery.is_repeated:
            self._send_ack(AckType.INDIVIDUAL, [delivery])
            return False
        if self.mode is Acknowledge.TRANSACTED and delivery.redelivery_counter > 0:
            policy = self._policy_of(delivery)
            is_exceeded = policy.is_exceeded(delivery.redelivery_counter)
            if is_exceeded and not delivery.is_redelivered_by_policy:
                self.poison(delivery, "the broker has sent it too often")
                return False
        return True

    def _pull(self, deadline: float | None, now: float) -> None:
        if self._connection.outbox.codec is None:
            # The next broker is asked then: `interrupt` and `resume` wake who waits.
            return
        self._is_pulling = True
        self._pull_ends = math.inf
        timeout = WAIT_FOR_EVER
        if deadline is not None and deadline - now < PULL_SECONDS_MAX:
            self._pull_ends = deadline
            # Brokers count whole ms, from some moment in one: they are not to end it too early.
            timeout = int((deadline - now) * 1000) + 2 if deadline > now else DO_NOT_WAIT
        self._connection.post(
            MessagePull(
                consumer_id=self.identifier, destination=self.info.destination, timeout=timeout
            )
        )

    def _patience(self, deadline: float) -> float:
        """Return how long after a deadline the broker is yet to say that it has no message.

        It says nothing of the kind as long as the pull of a call that was cancelled goes on.
        """
        return PULL_SECONDS if self._is_pulling and self._pull_ends <= deadline else 0.0

    def raise_error(self) -> None:
        """Raise what ended the consumer, if something did."""
        if self.error is not None:
            raise self.error

    # Acknowledging

    def finish(self, delivery: Delivery, moment: Moment) -> None:
        """Note that a listener is done with a delivery."""
        if delivery.generation != self._connection.generation:
            if not isinstance(self.book, KeptBook):
                self._connection.settled.note_late(self.key_of(delivery))
            return
        self.book.finish(delivery, self.info.prefetch_size, moment.now)

    @property
    def due(self) -> float | None:
        """Moment at which an acknowledgement must be sent at the latest."""
        return self.book.due

    def tick(self, now: float) -> None:
        """Send an acknowledgement that is due."""
        if self.book.due is not None and now >= self.book.due:
            self.book.flush()

    def acks_of_delivered(self) -> list[MessageAck]:
        """Return acknowledgements of everything handed out, for a transaction."""
        delivered = list(self.book.delivered.values())
        if not delivered:
            return []
        return [make_ack(AckType.STANDARD, self.identifier, run) for run in self._runs(delivered)]

    def acknowledge_delivered(self) -> None:
        """Acknowledge everything handed out, outside of any transaction."""
        if isinstance(self.book, KeptBook):
            delivered = self.book.take_all()
            if delivered:
                self._send_acks(AckType.STANDARD, delivered)

    def acknowledge_one(self, delivery: Delivery) -> None:
        """Acknowledge one delivery; nothing to do when it is settled, or its link is lost."""
        if self._take_delivered(delivery):
            self._send_ack(AckType.INDIVIDUAL, [delivery])

    def reject(self, delivery: Delivery, cause: str | BaseException) -> None:
        """Send a delivery to the dead letter queue."""
        if not isinstance(self.book, KeptBook) and delivery.arrival not in self.book.delivered:
            raise IllegalStateError("in AUTO mode a message is acknowledged when it is received")
        if self._take_delivered(delivery):
            self.poison(delivery, cause)

    def settle_delivered(self) -> None:
        """Forget what was handed out: its transaction is over."""
        if isinstance(self.book, KeptBook):
            self.book.take_all()
        self.has_lost = False

    def poison(self, delivery: Delivery, cause: str | BaseException) -> None:
        """Have the broker make a delivery a dead letter, with its *cause*."""
        self._connection.post(make_ack(AckType.POISON, self.identifier, [delivery], cause=cause))

    def _take_delivered(self, delivery: Delivery) -> bool:
        if delivery.generation != self._connection.generation:
            return False
        if isinstance(self.book, KeptBook):
            return self.book.take_delivery(delivery)
        return self.book.delivered.pop(delivery.arrival, None) is not None

    def _runs(self, deliveries: list[Delivery]) -> list[list[Delivery]]:
        if type(self._inbox) is Inbox:
            return [deliveries]
        return runs(deliveries, [each.arrival for each in self._inbox])

    def _send_acks(self, kind: AckType, deliveries: list[Delivery]) -> None:
        """Acknowledge deliveries, in ranges that span nothing else."""
        if len(deliveries) == 1 or kind is AckType.DELIVERED:
            self._send_ack(kind, deliveries)
            return
        for run in self._runs(deliveries):
            self._send_ack(kind, run)

    def _send_ack(self, kind: AckType, deliveries: list[Delivery]) -> None:
        connection = self._connection
        if kind in _SETTLING and connection.settled.is_watching:
            for each in deliveries:
                connection.settled.note_settled(self.key_of(each))
        codec = connection.outbox.codec
        if codec is not None and codec.version >= SPLICED_VERSION_MIN:
            number = connection.next_number()
            connection.outbox.put_frame(ack_frame(codec, number, kind, self._wire, deliveries))
        else:
            connection.post(make_ack(kind, self.identifier, deliveries))

    # Taking back

    @property
    def has_delivered(self) -> bool:
        """Tell whether something handed out is not acknowledged."""
        return bool(self.book.delivered)

    def redeliver(self, cause: str | BaseException | None, moment: Moment) -> None:
        """Hand everything not acknowledged out again; what came too often is a dead letter."""
        again: list[Delivery] = []
        for delivery in sorted(self.book.take_back(), key=lambda each: each.arrival):
            delivery.redelivery_counter += 1
            policy = self._policy_of(delivery)
            if not policy.is_exceeded(delivery.redelivery_counter):
                again.append(delivery)
                continue
            self.poison(
                delivery,
                f"Delivery[{delivery.redelivery_counter}] exceeds redelivery policy limit: "
                f"{policy.maximum_redeliveries}, cause: {cause_text(cause)}",
            )
        self.has_lost = False
        if again:
            policy = self._policy_of(again[0])
            self._redelivery_delay = policy.delay(
                again[0].redelivery_counter, self._redelivery_delay
            )
            self._inbox.put_back(again)
            spread = policy.spread(self._redelivery_delay, self._connection.chance())
            self._held_until = moment.now + spread
            self.line.wake()

    @property
    def has_held(self) -> bool:
        """Tell whether something waits for its time to be handed out again."""
        return 0 < self._held_until < math.inf and len(self._inbox) > 0

    def hold_back(self) -> None:
        """Hand out nothing more that came by this link."""
        self._held_until = math.inf

    def put_back(self, delivery: Delivery) -> None:
        """Be as if a delivery had not been handed out; nothing to do once it is settled."""
        if self._take_delivered(delivery):
            self._inbox.put_back([delivery])
            held = max(self.book.delivered.values(), key=lambda each: each.arrival, default=None)
            self._last_arrival = held.arrival if held else 0
            self._last_sequence = held.broker_sequence if held else DELIVERED_NOTHING

    def _policy_of(self, delivery: Delivery) -> RedeliveryPolicy:
        destination = delivery.destination
        if destination is None or not self._policies.policies:
            return self._policies.default
        return self._policies.policy_of(destination)

    # What the connection says

    def put_delivery(self, delivery: Delivery) -> None:
        """Take what the broker sends."""
        self._arrivals += 1
        delivery.arrival = self._arrivals
        delivery.generation = self._connection.generation
        if delivery.has_message:
            if self._lost and delivery.key in self._lost:
                self._lost.discard(delivery.key)
                delivery.redelivery_counter = max(1, delivery.redelivery_counter)
            settled = self._connection.settled
            if settled.is_suspicious and not self.info.browser:
                delivery.is_repeated = settled.holds(self.key_of(delivery))
        self._inbox.put_delivery(delivery)
        self.line.wake()

    def interrupt(self) -> None:
        """Forget what came by a link that is lost: the broker sends it again."""
        if self.info.browser and self._arrivals:
            self.end(IllegalStateError("the connection was lost while browsing; begin again"))
        settled = self._connection.settled
        self._lost.update(delivery.key for delivery in self.book.delivered.values())
        # What waited to be handed out for the second time still may have come before.
        self._lost.update(each.key for each in self._inbox if each.redelivery_counter)
        self.has_lost = self.has_lost or bool(self.book.delivered)
        for delivery in self.book.forget():
            settled.note_late(self.key_of(delivery))
        self._is_pulling = False
        self._held_until = 0.0
        self._inbox.clear()
        self.line.wake()

    def key_of(self, delivery: Delivery) -> object:
        """Return by what a message is known that may come again, in `Settled`."""
        return delivery.key, self._subscription

    def resume(self) -> None:
        """Note that a broker is there again."""
        self.line.wake()

    def control(self, prefetch: int, close: bool) -> None:
        """Do what the broker says."""
        if close:
            name = self.info.destination
            self.end(IllegalStateError(f"the broker closed the consumer of {name}"))
        else:
            self.info.prefetch_size = prefetch

    def end(self, error: MessagingError | None) -> None:
        """Give out nothing more."""
        self.is_closed = True
        self.error = self.error or error
        self.line.wake()

    def farewell(self) -> RemoveInfo:
        """Return what tells the broker that the consumer is no more."""
        self.book.flush()
        return RemoveInfo(object_id=self.identifier, last_delivered_sequence=self._last_sequence)
