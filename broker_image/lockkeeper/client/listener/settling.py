"""Settling: what becomes of a message once its function has said how it went."""

import asyncio
import logging
import time

from lockkeeper.client import aio
from lockkeeper.client.core.redelivery import RedeliveryPolicyMap
from lockkeeper.client.errors import TransactionRolledBackError
from lockkeeper.client.listener.converting import encoded
from lockkeeper.client.messages import DestinationName, ReceivedMessage
from lockkeeper.message.destination import Destination
from lockkeeper.message.primitives import Long, Value

RETRIES = "lockkeeper_retries"
"""Property with the number of failures before the message was put off."""
DUE = "lockkeeper_due"
"""Property with the time at which a message put off is to come, in ms since 1970."""
DELAY = "AMQ_SCHEDULED_DELAY"
_LOG = logging.getLogger(__name__)
_OF_THE_BROKER = ("scheduledJobId",)
_LOST = "the connection was lost, by which the message came"


class ListenerSettling:
    """Ends the work on one message at a time, in a transacted or an INDIVIDUAL session."""

    def __init__(
        self,
        session: aio.Session,
        policies: RedeliveryPolicyMap,
        send_to: DestinationName | None,
    ) -> None:
        self.session = session
        self._policies = policies
        self._send_to = send_to
        self._producer: aio.Producer | None = None
        self.consumer: aio.Consumer | None = None
        """Consumer of the messages; it is made after the session."""

    async def check_kept(self) -> None:
        """Raise TransactionRolledBackError when the link by which the message came is lost.

        Nothing can be said of it any more, and it comes again.
        """
        if self.consumer is not None and self.consumer.core.has_lost:
            await self.fail(_LOST)
            raise TransactionRolledBackError(_LOST)

    def give_back(self, message: ReceivedMessage) -> None:
        """Be as if a message had not been received."""
        if self.consumer is not None:
            self.consumer.give_back(message)

    async def succeed(self, message: ReceivedMessage, result: object) -> None:
        """Send what the function has returned, if it is to go anywhere, and end the work.

        Raises TransactionRolledBackError; ValueError for a result that no message can carry.
        """
        await self.check_kept()
        target = message.reply_to or self._send_to
        if result is not None and target is not None:
            correlation_id = message.correlation_id or message.message_id
            producer = await self._anywhere()
            await producer.send(encoded(result), destination=target, correlation_id=correlation_id)
        await self._done(message)

    async def _done(self, message: ReceivedMessage) -> None:
        if self.session.is_transacted:
            await self.session.commit()
        else:
            await self.check_kept()
            message.acknowledge()

    async def fail(self, cause: str | BaseException) -> None:
        """Let the message come again, or be a dead letter after too many times."""
        if self.session.is_transacted:
            await self.session.rollback(cause)
        else:
            self.session.recover(cause)

    async def bury(self, message: ReceivedMessage, cause: str | BaseException) -> None:
        """Make the message a dead letter, with its cause."""
        message.reject(cause)
        if self.session.is_transacted:
            await self.session.rollback()

    async def put_off(self, message: ReceivedMessage, delay: float) -> bool:
        """Let the message come again after *delay* seconds; False when that was too often.

        A transacted session does it as a whole; otherwise the copy is sent first, so that the
        message may come twice and is never lost.
        """
        earlier = message.properties.get(RETRIES)
        failures = message.delivery_count + (earlier if isinstance(earlier, int) else 0)
        origin = message.destination
        assert isinstance(origin, Destination)
        policy = self._policies.policy_of(origin)
        if policy.is_exceeded(failures):
            await self.bury(
                message,
                f"Delivery[{failures}] exceeds redelivery policy limit: "
                f"{policy.maximum_redeliveries}, cause: put off once more",
            )
            return False
        if self.session.is_transacted:
            await self.session.discard_sent()
        producer = await self._anywhere()
        milliseconds = max(1, round(delay * 1000))
        due = Long(int(time.time() * 1000) + milliseconds)
        extra: dict[str, Value] = {RETRIES: failures, DELAY: milliseconds, DUE: due}
        await producer.forward(message, destination=origin, without=_OF_THE_BROKER, extra=extra)
        await self._done(message)
        return True

    async def wait_until_due(self, message: ReceivedMessage) -> None:
        """Wait with a message that a broker without a scheduler has sent again too soon."""
        try:
            properties = message.properties
        except ValueError:
            # Whoever looks at them says so.
            return
        due, delay = properties.get(DUE), properties.get(DELAY)
        if not isinstance(delay, int) or not isinstance(due, int):
            return
        # Clocks differ, and are set: it was never meant to wait for longer than this.
        seconds = min(due / 1000 - time.time(), delay / 1000)
        if seconds > 0:
            _LOG.warning(
                "the broker has no scheduler (schedulerSupport): a consumer waits %.1f s with %s",
                seconds,
                message.message_id,
            )
            await asyncio.sleep(seconds)

    async def _anywhere(self) -> aio.Producer:
        if self._producer is None:
            self._producer = await self.session.producer()
        return self._producer
