"""Errors of streams, by what an application can do about them."""

from lockkeeper.client.errors import MessagingError
from lockkeeper.protocols.rocketmq.codec import Command
from lockkeeper.protocols.rocketmq.codes import Response


class StreamError(MessagingError):
    """Anything that concerns streams alone."""


class AddressError(StreamError, ValueError):
    """An address of a name server cannot be understood; the text says which."""


class UnreadableBodyError(StreamError):
    """The body of a message is compressed in a way that is unknown here, or damaged."""


class UnreadableAnswerError(StreamError):
    """A broker or name server said something that is none of RocketMQ's answers."""


class StreamRefusedError(StreamError):
    """The broker refused a request; `code` is RocketMQ's number for the reason."""

    def __init__(self, code: int, remark: str) -> None:
        super().__init__(f"{remark or 'refused without a reason'} (code {code})")
        self.code = code


class NoSuchStreamError(StreamRefusedError):
    """There is no such stream, and it is not made on first use."""


class InvalidFilterError(StreamRefusedError):
    """The tags or the condition of a subscription are none."""


class NotAllowedError(StreamRefusedError):
    """The user is unknown or may not do this."""


class BrokerBusyError(StreamRefusedError):
    """The broker cannot do this now; it may later."""


_KINDS: dict[int, type[StreamRefusedError]] = {
    Response.TOPIC_NOT_EXIST: NoSuchStreamError,
    Response.SUBSCRIPTION_PARSE_FAILED: InvalidFilterError,
    Response.NO_PERMISSION: NotAllowedError,
    Response.SYSTEM_BUSY: BrokerBusyError,
    Response.SERVICE_NOT_AVAILABLE: BrokerBusyError,
    Response.FLOW_CONTROL: BrokerBusyError,
}


def refusal(answer: Command) -> StreamRefusedError:
    """Return the error for an answer that refuses."""
    kind = _KINDS.get(answer.code, StreamRefusedError)
    return kind(answer.code, answer.remark or "")
