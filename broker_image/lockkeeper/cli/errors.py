"""Failures of a command, told in one line with an exit code and without a traceback."""

import os

FAILED = 1
"""The command could not do what it was asked to."""
MISUSED = 2
"""The command was asked for something that makes no sense, or its configuration is wrong."""
INTERRUPTED = 130
"""The person pressed Ctrl-C."""

TRACEBACK_VARIABLE = "LOCKKEEPER_TRACEBACK"
"""Set to anything, errors keep their traceback: for finding defects of Lockkeeper itself."""

NO_BROKER_HINT = "start one with `lockkeeper up`, or name another by --url"


class CommandError(Exception):
    """A command cannot go on; the text is for the person who typed it."""

    def __init__(self, text: str, code: int = FAILED) -> None:
        super().__init__(text)
        self.code = code


def misused(text: str) -> CommandError:
    """Return the error for a command that makes no sense."""
    return CommandError(text, MISUSED)


def explain(error: BaseException) -> tuple[str, int]:
    """Return what to say about *error* and the exit code."""
    if isinstance(error, CommandError):
        return str(error), error.code
    if isinstance(error, KeyboardInterrupt):
        return "interrupted", INTERRUPTED
    if isinstance(error, OSError):
        return _system_error(error), FAILED
    return _error_of_a_room(error) or (
        f"this is a defect of Lockkeeper: {type(error).__name__}: {error} "
        f"(set {TRACEBACK_VARIABLE}=1 to see where)",
        FAILED,
    )


def _error_of_a_room(error: BaseException) -> tuple[str, int] | None:
    """Return what to say about an error that another room raises knowingly, else None."""
    from lockkeeper.client import (
        BrokerUrlError,
        ConnectionFailedError,
        InvalidSelectorError,
        MessagingError,
        RefusedError,
    )
    from lockkeeper.journal.errors import JournalError
    from lockkeeper.message.errors import MalformedMessageError
    from lockkeeper.server.errors import CannotRunError
    from lockkeeper.store.base import StoreError
    from lockkeeper_api import InvalidResourceError

    if isinstance(error, ConnectionFailedError):
        return f"{_without_number(error)}; {NO_BROKER_HINT}", FAILED
    if isinstance(error, BrokerUrlError | InvalidResourceError):
        return str(error), MISUSED
    if isinstance(error, RefusedError):
        said = error.java_message or str(error)
        return said, MISUSED if isinstance(error, InvalidSelectorError) else FAILED
    known = (MessagingError, JournalError, MalformedMessageError, CannotRunError, StoreError)
    return (str(error), FAILED) if isinstance(error, known) else None


def _without_number(error: BaseException) -> str:
    """Return what *error* says with its cause in words: no `[Errno 111]`."""
    cause = error.__cause__
    if isinstance(cause, OSError) and cause.strerror:
        return str(error).replace(str(cause), cause.strerror)
    return str(error)


def _system_error(error: OSError) -> str:
    """Return what the operating system said, with the file it is about."""
    reason = error.strerror or str(error)
    return f"{error.filename}: {reason}" if error.filename else reason


def wants_traceback() -> bool:
    """Tell whether the person asked for tracebacks."""
    return bool(os.environ.get(TRACEBACK_VARIABLE))
