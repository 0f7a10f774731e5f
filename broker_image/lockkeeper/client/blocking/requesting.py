"""Requests and their answers of the blocking face."""

from collections.abc import Mapping

from lockkeeper.client import aio
from lockkeeper.client.blobs import Blob
from lockkeeper.client.blocking.closing import Closing
from lockkeeper.client.blocking.loop import Caller
from lockkeeper.client.messages import ReceivedMessage
from lockkeeper.message.bodies import Body
from lockkeeper.message.primitives import Value


class Requestor(Closing):
    """Sends requests and returns their answers; made by `Connection.requestor`.

    A request names a temporary queue of the requestor (JMSReplyTo) and a correlation id, which its
    answer has to carry. Any number of threads may ask at once. An answer that nobody waits for any
    more is dropped.
    """

    def __init__(self, thread: Caller, requestor: aio.Requestor) -> None:
        self._thread = thread
        self._aio = requestor

    def request(
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
        return self._thread.call(self._aio.request(body, properties, type=type, timeout=timeout))

    def close(self) -> None:
        """Take no more answers: requests that wait for one end with IllegalStateError."""
        self._thread.call(self._aio.close())
