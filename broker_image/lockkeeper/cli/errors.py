"""Failures of a command, told in one line with an exit code and without a traceback."""

import os
import sys

from lockkeeper.cli.extras import foreign, missing

FAILED = 1
"""The command could not do what it was asked to."""
MISUSED = 2
"""The command was asked for something that makes no sense, or its configuration is wrong."""
INTERRUPTED = 130
"""The person pressed Ctrl-C."""

TRACEBACK_VARIABLE = "LOCKKEEPER_TRACEBACK"
"""Set to anything, errors keep their traceback: for finding defects of Lockkeeper itself."""

_WRONG = (
    "lockkeeper.client.errors:BrokerUrlError",
    "lockkeeper_api.documents:InvalidResourceError",
)
_KNOWN = (
    "lockkeeper.client.errors:MessagingError",
    "lockkeeper.journal.errors:JournalError",
    "lockkeeper.message.errors:MalformedMessageError",
    "lockkeeper.server.errors:CannotRunError",
    "lockkeeper.store.base:StoreError",
)
"""Errors that other rooms raise knowingly, as `module:class`."""

NO_BROKER_HINT = "start one with `lockkeeper up`, or name another by --url"


class CommandError(Exception):
    """A command cannot go on; the text is for the person who typed it."""

    def __init__(self, text: str, code: int = FAILED) -> None:
        super().__init__(text)
        self.code = code


def misused(text: str) -> CommandError:
    """Return the error for a command that makes no sense."""
    return CommandError(text, MISUSED)


def explain(error: BaseException, program: str = "lockkeeper") -> tuple[str, int]:
    """Return what to say about *error* of *program*, and the exit code."""
    if isinstance(error, CommandError):
        return str(error), error.code
    if isinstance(error, KeyboardInterrupt):
        return "interrupted", INTERRUPTED
    if isinstance(error, OSError):
        return _system_error(error), FAILED
    if isinstance(error, ModuleNotFoundError) and (absent := foreign(error)):
        return missing(program, absent), FAILED
    return _error_of_a_room(error) or (
        f"this is a defect of Lockkeeper: {type(error).__name__}: {error} "
        f"(set {TRACEBACK_VARIABLE}=1 to see where)",
        FAILED,
    )


def _error_of_a_room(error: BaseException) -> tuple[str, int] | None:
    """Return what to say about an error that another room raises knowingly, else None."""
    if _is_one(error, "lockkeeper.client.errors:ConnectionFailedError"):
        return f"{_without_number(error)}; {NO_BROKER_HINT}", FAILED
    if _is_one(error, *_WRONG):
        return str(error), MISUSED
    if _is_one(error, "lockkeeper.client.errors:RefusedError"):
        is_selector = _is_one(error, "lockkeeper.client.errors:InvalidSelectorError")
        said = getattr(error, "java_message", "") or str(error)
        return said, MISUSED if is_selector else FAILED
    return (str(error), FAILED) if _is_one(error, *_KNOWN) else None


def _is_one(error: BaseException, *names: str) -> bool:
    """Tell whether an error is of one of some classes, of which none is imported for that."""
    for name in names:
        module, _, attribute = name.partition(":")
        kind = getattr(sys.modules.get(module), attribute, None)
        if isinstance(kind, type) and isinstance(error, kind):
            return True
    return False


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
