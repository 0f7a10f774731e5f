"""Errors as kombu sorts them: by what is done about them."""

from amqp.exceptions import RecoverableConnectionError
from kombu.exceptions import ChannelError, ConnectionError

from lockkeeper.client.errors import (
    ConnectionFailedError,
    IllegalStateError,
    RefusedError,
    RequestTimedOutError,
    SecurityError,
)

RECOVERABLE_CONNECTION_ERRORS = (
    ConnectionFailedError,
    RequestTimedOutError,
    RecoverableConnectionError,
    OSError,
)
"""Another connection may do it: the broker is away, or does not answer."""

CONNECTION_ERRORS = (*RECOVERABLE_CONNECTION_ERRORS, IllegalStateError, ConnectionError)
"""The connection is of no use any more."""

RECOVERABLE_CHANNEL_ERRORS: tuple[type[Exception], ...] = ()
"""Nothing that a broker refuses is granted when it is asked again."""

CHANNEL_ERRORS = (RefusedError, ChannelError)
"""The broker refuses; of them SecurityError ends a worker when it connects."""

__all__ = [
    "CHANNEL_ERRORS",
    "CONNECTION_ERRORS",
    "RECOVERABLE_CHANNEL_ERRORS",
    "RECOVERABLE_CONNECTION_ERRORS",
    "SecurityError",
]
