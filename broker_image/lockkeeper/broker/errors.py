"""Refusals of the core, named by the JMS concept that fits; protocols give each its wire form."""


class BrokerError(Exception):
    """A command cannot be carried out; nothing else is disturbed by it."""


class InvalidClientIdError(BrokerError):
    """The client id is missing or in use by another connection."""


class InvalidDestinationError(BrokerError):
    """The destination or durable subscription does not exist or may not be used so."""


class CircularForwardingError(InvalidDestinationError):
    """Rules forward what is sent to the destination in a circle."""


class UnanswerableError(InvalidDestinationError):
    """A request cannot be answered where it asks for that."""


class DestinationGoneError(BrokerError):
    """The temporary destination of a bridge's message is gone; the text is its name alone."""


class InvalidSelectorError(BrokerError):
    """The selector is not in the language of JMS 1.1 section 3.8.1."""


class InvalidScheduleError(BrokerError):
    """The schedule that a message asks for makes no sense; the text names the property."""


class InvalidRequestError(BrokerError):
    """The request to the broker itself makes no sense; the text names the property."""


class ResourceAllocationError(BrokerError):
    """A limit is reached; the text names it and its setting."""


class TooLargeError(ResourceAllocationError):
    """The copies of a message are more than are ever taken, however much room there is."""


class AccessDeniedError(BrokerError):
    """The user is unknown, or may not do this."""


class AcknowledgeError(BrokerError):
    """An acknowledgement names a message that was not dispatched to its consumer."""


class TransactionError(BrokerError):
    """A transaction is unknown or in the wrong state; `xa_code` is XAException's errorCode."""

    def __init__(self, text: str, xa_code: int = -4) -> None:
        super().__init__(text)
        self.xa_code = xa_code


class TransactionRolledBackError(BrokerError):
    """A part of the transaction was refused, so that it cannot be committed as a whole."""


class InternalError(BrokerError):
    """The broker failed at a command in a way that nobody expected."""


def internal_error(error: Exception) -> InternalError:
    """Return what a client is told of an error that nobody expected."""
    return InternalError(f"the broker could not carry that out: {type(error).__name__}: {error}")
