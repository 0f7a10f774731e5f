"""Errors of the client, by what an application can do about them.

Refusals of a broker carry the class and the message of the Java exception it answered with;
`javax.jms` and `jakarta.jms` names mean the same.
"""

from lockkeeper.message.openwire import Throwable


class MessagingError(Exception):
    """Anything this client raises."""


class BrokerUrlError(MessagingError, ValueError):
    """A broker URL cannot be understood; the text names the part or the option."""


class IllegalStateError(MessagingError):
    """The call does not fit the object: it is closed, or made for another mode."""


class ConnectionFailedError(MessagingError):
    """No broker could be reached, or the connection was lost for good."""


class BlobError(MessagingError):
    """A blob could not be read from its URL, or not be put there; the text says why."""


class RequestTimedOutError(MessagingError):
    """No broker was there within the time that the failover option `timeout` allows."""


class TransactionRolledBackError(MessagingError):
    """The transaction has not happened: what was sent is gone, what was taken comes again."""


class TransactionInDoubtError(TransactionRolledBackError):
    """The connection broke while a commit was under way: it may have happened.

    Treat it as rolled back and expect duplicates: what was sent may be sent already, and what
    was taken may not come again, so that its results must be kept.
    """


class RefusedError(MessagingError):
    """The broker refused a command, with a Java exception."""

    def __init__(self, java_class: str, java_message: str) -> None:
        super().__init__(f"{java_message or 'refused without a reason'} ({java_class})")
        self.java_class = java_class
        self.java_message = java_message


class InvalidDestinationError(RefusedError):
    """The destination or the subscription does not exist or is not allowed."""


class InvalidClientIdError(RefusedError):
    """The client id is in use by another connection."""


class InvalidSelectorError(RefusedError):
    """The selector is not one."""


class SecurityError(RefusedError):
    """The user is unknown or may not do this."""


class ResourceAllocationError(RefusedError):
    """The broker is at one of its limits."""


_BY_JAVA_NAME: dict[str, type[RefusedError]] = {
    "InvalidDestinationException": InvalidDestinationError,
    "InvalidClientIDException": InvalidClientIdError,
    "InvalidSelectorException": InvalidSelectorError,
    "JMSSecurityException": SecurityError,
    "SecurityException": SecurityError,
    "ResourceAllocationException": ResourceAllocationError,
}


def refused(throwable: Throwable | None) -> RefusedError:
    """Return the error for the exception a broker answered with."""
    if throwable is None:
        return RefusedError("java.lang.Throwable", "")
    java_class = throwable.class_name or "java.lang.Throwable"
    kind = _BY_JAVA_NAME.get(java_class.rpartition(".")[2], RefusedError)
    return kind(java_class, throwable.message or "")
