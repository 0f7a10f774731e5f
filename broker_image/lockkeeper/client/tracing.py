"""Trace context: the ids by which tracing tools join what belongs together (W3C Trace Context).

It travels as the properties `traceparent` and `tracestate`. Whatever is sent while a context is
current carries it; the listener container makes that of a message current.
"""

import re
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace

from lockkeeper.message.primitives import Value

PARENT, STATE = "traceparent", "tracestate"
SAMPLED = 1
_PARENT_FORM = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")


@dataclass(frozen=True, slots=True)
class TraceContext:
    """Ids of a trace and of the span that is under way, as lower-case hexadecimal digits."""

    trace_id: str
    span_id: str
    flags: int = SAMPLED
    state: str | None = None

    @property
    def traceparent(self) -> str:
        """The value of the property `traceparent`."""
        return f"00-{self.trace_id}-{self.span_id}-{self.flags:02x}"

    def child(self) -> "TraceContext":
        """Return the context of a new span within this one."""
        return replace(self, span_id=secrets.token_hex(8))


_CURRENT: ContextVar[TraceContext | None] = ContextVar("lockkeeper_trace", default=None)


def new_trace() -> TraceContext:
    """Return a context that begins a trace."""
    return TraceContext(secrets.token_hex(16), secrets.token_hex(8))


def current_trace() -> TraceContext | None:
    """Return the context that is current in this task or thread, None when there is none."""
    return _CURRENT.get()


@contextmanager
def tracing(context: TraceContext | None) -> Iterator[None]:
    """Make a context current for the block; None makes none current."""
    token = _CURRENT.set(context)
    try:
        yield
    finally:
        _CURRENT.reset(token)


def trace_of(properties: Mapping[str, Value]) -> TraceContext | None:
    """Return the context that a message carries; None without one, or with one that is broken."""
    parent, state = properties.get(PARENT), properties.get(STATE)
    match = _PARENT_FORM.fullmatch(parent) if isinstance(parent, str) else None
    if match is None:
        return None
    version, trace_id, span_id, flags, rest = match.groups()
    is_broken = version == "ff" or (version == "00" and rest)
    if is_broken or not trace_id.strip("0") or not span_id.strip("0"):
        return None
    return TraceContext(
        trace_id, span_id, int(flags, 16), state if isinstance(state, str) else None
    )


def traced(properties: Mapping[str, Value] | None) -> Mapping[str, Value] | None:
    """Return properties with the current context, unless they carry one."""
    context = _CURRENT.get()
    if context is None or (properties and PARENT in properties):
        return properties
    carried: dict[str, Value] = {**(properties or {}), PARENT: context.traceparent}
    if context.state:
        carried[STATE] = context.state
    return carried
