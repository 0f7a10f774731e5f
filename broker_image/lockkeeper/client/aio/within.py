"""Calls of listeners: whoever is within one must not wait for its end.

A context variable tells, so that tasks which a listener begins, and what it has others call, are
within it, too, as long as it runs.
"""

import asyncio
import logging
from collections.abc import Coroutine
from contextvars import ContextVar, Token, copy_context
from typing import Any

_LOG = logging.getLogger(__name__)
_BEGUN: "set[asyncio.Task[object]]" = set()


class ListenerCall:
    """The time in which a listener that belongs to *owner* runs, as a block."""

    __slots__ = ("_token", "owner")

    def __init__(self, owner: object) -> None:
        self.owner: object = owner
        self._token: Token[tuple[ListenerCall, ...]] | None = None

    def __enter__(self) -> None:
        self._token = _CALLS.set((*_CALLS.get(), self))

    def __exit__(self, *_: object) -> None:
        # Tasks that the listener has begun may go on, and are not within it any more.
        self.owner = None
        assert self._token is not None
        _CALLS.reset(self._token)


_CALLS: ContextVar[tuple[ListenerCall, ...]] = ContextVar("lockkeeper_listener_calls", default=())


def is_within(owner: object) -> bool:
    """Tell whether a listener of *owner* makes this call, or has somebody make it."""
    return any(call.owner is owner for call in _CALLS.get())


def begin_outside(coroutine: Coroutine[Any, Any, object]) -> None:
    """Have the running event loop carry a coroutine out, within no listener, and do not wait."""
    context = copy_context()
    context.run(_CALLS.set, ())
    task = asyncio.get_running_loop().create_task(coroutine, context=context)
    _BEGUN.add(task)
    task.add_done_callback(_note_end)


def _note_end(task: "asyncio.Task[object]") -> None:
    _BEGUN.discard(task)
    if not task.cancelled() and (error := task.exception()) is not None:
        _LOG.warning("closing from within a listener", exc_info=error)
