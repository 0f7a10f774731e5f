"""Answers messages that ask for figures (ActiveMQ's statisticsBrokerPlugin).

A message to a queue or topic called ActiveMQ.Statistics.Broker, .Destination.NAME (a wildcard
perhaps) or .Subscription is answered to its JMSReplyTo, and goes no further. The names of the
figures are ActiveMQ's.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias

from lockkeeper.broker.context import END_BYTES
from lockkeeper.broker.interceptors.figures import Figures
from lockkeeper.broker.requests.turns import Steps
from lockkeeper.message.bodies import MessageType, encode_body
from lockkeeper.message.destination import Destination
from lockkeeper.message.ids import MessageId, ProducerId
from lockkeeper.message.message import Message
from lockkeeper.message.openwire import ActiveMQMapMessage
from lockkeeper.message.openwire import Message as Fields
from lockkeeper.message.primitives import Value
from lockkeeper.message.rewrite import decoded, encoded, properties_of
from lockkeeper.store.base import Receipt

if TYPE_CHECKING:
    from lockkeeper.broker.connections import Connection
    from lockkeeper.broker.context import Context
    from lockkeeper.broker.regions.queue import Queue
    from lockkeeper.broker.regions.registry import Registry
    from lockkeeper.broker.regions.topic import Topic
    from lockkeeper.broker.requests.answers import Answers
    from lockkeeper.broker.requests.requests import Requests

PREFIX = "ActiveMQ.Statistics."
BROKER = PREFIX + "Broker"
DESTINATION = PREFIX + "Destination"
SUBSCRIPTION = PREFIX + "Subscription"
END_WITH_NULL = DESTINATION + ".List.End.With.Null"
"""In the name or as a property: an empty answer follows the last one."""
FIRST_TIMESTAMP = DESTINATION + ".Include.First.Message.Timestamp"
"""As a property: the answer has `firstMessageTimestamp`."""

# An answer takes as long as sending so many bytes.
ANSWER_BYTES: Final = 128 << 10

_Answer: TypeAlias = Mapping[str, Value]


class StatisticsQueries:
    """Sees every message, but looks only at those with such a name."""

    def __init__(
        self,
        context: "Context",
        registry: "Registry",
        connections: "Mapping[str, Connection]",
        broker_name: str,
        broker_id: str,
        requests: "Requests",
    ) -> None:
        self._context = context
        self._registry = registry
        self._figures = Figures(context, registry, connections)
        self._name, self.broker_id = broker_name, broker_id
        self._requests = requests
        self._producer = ProducerId(f"{broker_id}-2:1", 0, 0)
        self._count = 0

    def intercept(
        self, connection: "Connection", message: Message, receipt: Receipt | None
    ) -> Message | None:
        """See `Interceptor.intercept`; a message without a JMSReplyTo goes on."""
        if not message.destination.name.startswith(PREFIX):
            return message
        question = decoded(message)
        answers = self._answers(message.destination, question)
        if answers is None or question.reply_to is None:
            return message
        answer = partial(self._answer, question, question.reply_to, answers)
        self._requests.answer(connection, message, receipt, question.reply_to, answer)
        return None

    def passes(self, messages: Sequence[Message]) -> bool:
        """See `Interceptor.passes`: their destination tells."""
        return not messages[0].destination.name.startswith(PREFIX)

    @property
    def _broker(self) -> _Answer:
        return {"brokerName": self._name, "brokerId": self.broker_id}

    def _answers(self, asked: Destination, question: Fields) -> Iterator[_Answer | None] | None:
        """Return what a question is answered with, one in each step; None for one with none."""
        if asked.name.startswith(DESTINATION):
            return self._about_destinations(asked, properties_of(question))
        if asked.name.startswith(SUBSCRIPTION):
            return self._figures.consumers()
        if asked.name.startswith(BROKER):
            return self._figures.broker()
        return None

    def _about_destinations(
        self, asked: Destination, properties: Mapping[str, Value]
    ) -> Iterator[_Answer]:
        rest = asked.name.removeprefix(DESTINATION).removeprefix(".")
        name = rest.replace(END_WITH_NULL, "")
        if name:
            regions = self._regions(Destination(asked.kind, name))
            yield from self._figures.destinations(regions, FIRST_TIMESTAMP in properties)
        if name != rest or END_WITH_NULL in properties:
            yield {}

    def _regions(self, destination: Destination) -> "Iterator[Queue | Topic]":
        for part in destination.parts():
            if part.is_pattern:
                yield from self._registry.matching(part)
            elif (region := self._registry.find(part)) is not None:
                yield region

    def _answer(
        self,
        question: Fields,
        to: Destination,
        found: Iterable[_Answer | None],
        answers: "Answers",
    ) -> Steps:
        for figures in found:
            if figures is None:
                yield END_BYTES
                continue
            told = {**self._broker, **figures} if figures else figures
            yield from answers.send(self._message(question, to, told))
            yield ANSWER_BYTES

    def _message(self, question: Fields, target: Destination, answer: _Answer) -> Message:
        self._count += 1
        context = self._context
        sequence = context.next_sequence()
        reply = ActiveMQMapMessage(
            producer_id=self._producer,
            destination=target,
            message_id=MessageId(self._producer, self._count, sequence),
            correlation_id=question.correlation_id,
            type="Advisory",
            content=encode_body(MessageType.MAP, answer),
            broker_in_time=context.now,
        )
        return encoded(reply, sequence)
