"""Invocation: a function called with what its parameters ask for, in a thread or awaited."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor
from contextvars import copy_context
from typing import Any

from lockkeeper.client import aio, blocking
from lockkeeper.client.listener.converting import Convert, converter
from lockkeeper.client.listener.outcomes import Outcome
from lockkeeper.client.listener.threads import session_for_thread
from lockkeeper.client.messages import ReceivedMessage

Function = Callable[..., Any]
_SESSIONS = (aio.Session, blocking.session.Session)


class ListenerCancelledError(Exception):
    """Something that a function awaited was cancelled, by itself or somebody else."""


class ListenerExitError(Exception):
    """A function wanted to end the process, and with it what others have in hand."""


class Invocation:
    """A function and what it wants; made once. Raises TypeError when that cannot be given.

    A function that yields is refused, too: a call of it does nothing. One that returns something
    to be awaited, such as a coroutine function that is wrapped by a plain one, is awaited.

    The first parameter gets the message, or its body as the hint says; one of type
    ReceivedMessage the message, one of type Session the session, in which what is sent is part
    of the transaction.
    """

    def __init__(self, function: Function) -> None:
        self.function = function
        self.is_coroutine = is_coroutine_function(function)
        if _is_any(function, inspect.isgeneratorfunction, inspect.isasyncgenfunction):
            raise TypeError(f"{_name(function)}: a listener returns its answer, and does not yield")
        self._parameters: list[Convert | None] = []
        bodies = 0
        signature = inspect.signature(function, eval_str=True)
        for name, parameter in signature.parameters.items():
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                raise TypeError(f"{_name(function)}: a listener names its parameters, no *{name}")
            hint = parameter.annotation
            if hint is parameter.empty:
                hint = ReceivedMessage
            if hint in _SESSIONS:
                self._check_face(hint)
                self._parameters.append(None)
                continue
            if hint is not ReceivedMessage:
                bodies += 1
            self._parameters.append(converter(hint))
        if bodies > 1 or not self._parameters:
            raise TypeError(f"{_name(function)}: a listener takes a message, or one body")

    def _check_face(self, hint: Any) -> None:
        wanted = _SESSIONS[0] if self.is_coroutine else _SESSIONS[1]
        if hint is not wanted:
            kind = "coroutine function" if self.is_coroutine else "function"
            raise TypeError(
                f"{_name(self.function)}: a {kind} takes a {wanted.__module__}.{wanted.__name__}"
            )

    async def call(self, message: ReceivedMessage, session: aio.Session, executor: Executor) -> Any:
        """Return what the function returns. Raises what it raises, and InvalidBodyError."""
        if self.is_coroutine:
            result = await uncancelled(self.function(*self._arguments(message, session)))
        else:
            loop = asyncio.get_running_loop()
            result = await in_thread(executor, self._call_in_thread, message, session, loop)
            if inspect.isawaitable(result):
                result = await uncancelled(result)
        if isinstance(result, Outcome):
            raise result
        return result

    def _call_in_thread(
        self, message: ReceivedMessage, session: aio.Session, loop: asyncio.AbstractEventLoop
    ) -> Any:
        threaded = session_for_thread(session, loop)
        return self.function(*self._arguments(message, threaded))

    def _arguments(self, message: ReceivedMessage, session: Any) -> list[Any]:
        return [session if each is None else each(message) for each in self._parameters]


def is_coroutine_function(function: Callable[..., Any]) -> bool:
    """Tell whether what a call returns is awaited, also for objects that can be called."""
    return _is_any(function, inspect.iscoroutinefunction)


def _is_any(function: Callable[..., Any], *kinds: Callable[[Any], bool]) -> bool:
    called = getattr(function, "__call__", None)  # noqa: B004
    return any(kind(function) or kind(called) for kind in kinds)


async def in_thread(executor: Executor, call: Callable[..., Any], *arguments: Any) -> Any:
    """Return what a call returns that is made in a thread, with the context of this task."""
    loop = asyncio.get_running_loop()
    run = copy_context().run
    return await uncancelled(loop.run_in_executor(executor, run, call, *arguments))


async def uncancelled(call: Awaitable[Any]) -> Any:
    """Return what is awaited. Raises ListenerCancelledError where only that was cancelled.

    A CancelledError would end this task, which nobody has cancelled: something that a function
    awaited was. A SystemExit would end the event loop: ListenerExitError.
    """
    try:
        return await call
    except SystemExit as error:
        raise ListenerExitError(f"it called sys.exit({error.code!r})") from error
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        raise ListenerCancelledError("what it awaited was cancelled") from error


def _name(function: Function) -> str:
    return getattr(function, "__qualname__", type(function).__qualname__)
