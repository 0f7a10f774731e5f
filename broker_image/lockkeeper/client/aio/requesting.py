"""Requests and their answers for asyncio: what JMS calls a QueueRequestor or a TopicRequestor."""

import asyncio
import itertools
from collections.abc import Callable, Mapping

from lockkeeper.client.aio.closing import Closing
from lockkeeper.client.aio.consumer import Consumer
from lockkeeper.client.aio.producer import Producer
from lockkeeper.client.aio.session import Session
from lockkeeper.client.blobs import Blob
from lockkeeper.client.errors import IllegalStateError, MessagingError, RequestTimedOutError
from lockkeeper.client.messages import ReceivedMessage
from lockkeeper.message.bodies import Body
from lockkeeper.message.destination import Destination
from lockkeeper.message.errors import MalformedMessageError
from lockkeeper.message.primitives import Value


class Requestor(Closing):
    """Sends requests and returns their answers; made by `Connection.requestor`.

    A request names a temporary queue of the requestor (JMSReplyTo) and a correlation id, which its
    answer has to carry. Any number of tasks may ask at once. An answer that nobody waits for any
    more is dropped.
    """

    def __init__(
        self,
        session: Session,
        producer: Producer,
        consumer: Consumer,
        answers: Destination,
        drop: Callable[[Destination], None],
    ) -> None:
        """*consumer* takes the *answers*, a temporary queue; *drop* deletes that."""
        self._session = session
        self._producer = producer
        self._consumer = consumer
        self._answers = answers
        self._drop = drop
        self._numbers = itertools.count(1)
        self._waiting: dict[str, asyncio.Future[ReceivedMessage | None]] = {}
        self._end: MessagingError | None = None
        self._taking = asyncio.create_task(self._take_answers(), name="lockkeeper-requestor")

    async def request(
        self,
        body: Body | Blob,
        properties: Mapping[str, Value] | None = None,
        *,
        type: str | None = None,
        timeout: float | None = None,
    ) -> ReceivedMessage:
        """Send a request and return its answer.

        Raises what `Producer.send` does, and RequestTimedOutError when there is no answer within
        *timeout* seconds: somebody may be at work on the request all the same. An answer that is
        lost together with its broker does not come again.
        """
        correlation_id = str(next(self._numbers))
        answer: asyncio.Future[ReceivedMessage | None] = asyncio.get_running_loop().create_future()
        self._waiting[correlation_id] = answer
        try:
            async with asyncio.timeout(timeout):
                message = None
                if self._end is None:
                    await self._producer.send(
                        body, properties, type=type,
                        correlation_id=correlation_id, reply_to=self._answers,
                    )  # fmt: skip
                    message = await answer
        except TimeoutError as error:
            text = f"no answer from {self._producer.destination} within {timeout:g} s"
            raise RequestTimedOutError(text) from error
        finally:
            del self._waiting[correlation_id]
        if message is None:
            assert self._end is not None
            raise self._end
        return message

    async def _take_answers(self) -> None:
        """Give answers to those who wait for them, until the consumer ends, and they with it."""
        end: MessagingError = IllegalStateError("the requestor is closed")
        try:
            async for message in self._consumer:
                answer = self._waiting.get(_correlation_of(message))
                if answer is not None and not answer.done():
                    answer.set_result(message)
        except MessagingError as error:
            end = error
        finally:
            self._end = end
            for answer in self._waiting.values():
                if not answer.done():
                    answer.set_result(None)

    async def close(self) -> None:
        """Take no more answers: requests that wait for one end with IllegalStateError."""
        await self._consumer.close()
        await self._taking
        await self._session.close()
        self._drop(self._answers)


def _correlation_of(message: ReceivedMessage) -> str:
    try:
        return message.correlation_id or ""
    except MalformedMessageError:
        return ""
