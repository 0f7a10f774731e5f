"""What a command can fail with, and how that is said: one line, an exit code, no traceback."""

import os

from lockkeeper.journal.errors import JournalError
from lockkeeper.message.errors import MalformedMessageError
from lockkeeper_api import InvalidResourceError

FAILED = 1
"""The command could not do what it was asked to."""
MISUSED = 2
"""The command was asked for something that makes no sense, or its configuration is wrong."""
INTERRUPTED = 130
"""The person pressed Ctrl-C."""

TRACEBACK_VARIABLE = "LOCKKEEPER_TRACEBACK"
"""Set to anything, errors keep their traceback: for finding defects of Lockkeeper itself."""


class CommandError(Exception):
    """A command cannot go on; the text is for the person who typed it."""

    def __init__(self, text: str, code: int = FAILED) -> None:
        super().__init__(text)
        self.code = code


def explain(error: BaseException) -> tuple[str, int]:
    """Return what to say about *error* and the exit code."""
    if isinstance(error, CommandError):
        return str(error), error.code
    if isinstance(error, KeyboardInterrupt):
        return "interrupted", INTERRUPTED
    if isinstance(error, InvalidResourceError):
        return str(error), MISUSED
    if isinstance(error, OSError):
        return _system_error(error), FAILED
    if isinstance(error, (JournalError, MalformedMessageError)):
        return str(error), FAILED
    return (
        f"this is a defect of Lockkeeper: {type(error).__name__}: {error} "
        f"(set {TRACEBACK_VARIABLE}=1 to see where)",
        FAILED,
    )


def _system_error(error: OSError) -> str:
    """Return what the operating system said, with the file it is about."""
    reason = error.strerror or str(error)
    return f"{error.filename}: {reason}" if error.filename else reason


def wants_traceback() -> bool:
    """Tell whether the person asked for tracebacks."""
    return bool(os.environ.get(TRACEBACK_VARIABLE))
