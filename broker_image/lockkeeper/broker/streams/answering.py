"""Answers of streams that wait until what they are about is durable."""

from lockkeeper.broker.connections import Connection
from lockkeeper.broker.streams.outputs import StreamOutput


class AnswerReceipt:
    """A receipt that sends an answer."""

    def __init__(self, connection: Connection, answer: StreamOutput) -> None:
        self._connection = connection
        self._answer = answer

    def settle(self) -> None:
        """Send the answer."""
        self._connection.put(self._answer)
