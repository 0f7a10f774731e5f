"""Unexpected errors: one thing that fails harms only itself, is counted, and told of.

Whoever calls something on behalf of many (a tick, a batch of receipts, a turn of the event loop)
catches what that raises, notes it here, and goes on with its neighbours. What failed is tried
again later, less and less often, or is set aside. A StoreError is never contained: without its
journal the broker must stop.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Final

from lockkeeper.store.base import Receipt, StoreError

KINDS = ("backlog", "command", "connection", "memory", "message", "receipt", "telling", "timer")
RECORDS_MAX: Final = 100
RETRY_MS: Final = 1_000
RETRY_MS_MAX: Final = 64_000


class Contained:
    """Failures of one kind: their number, and the first and last time (ms since the epoch)."""

    __slots__ = ("count", "error", "first", "kind", "last", "what")

    def __init__(self, kind: str, what: str, error: str, now: int) -> None:
        self.kind = kind
        self.what = what
        self.error = error
        self.count = 0
        self.first = self.last = now


Report = Callable[[Contained, Exception], None]
"""Called with the first error of its kind at its place; the next ones are only counted."""


class Containment:
    """All that was contained: `counts` by kind, the latest places in `records`."""

    def __init__(self, now: Callable[[], int]) -> None:
        self._now = now
        self.counts: Counter[str] = Counter(dict.fromkeys(KINDS, 0))
        self.records: dict[tuple[str, str, str], Contained] = {}
        self.report: Report | None = None

    def note_error(self, kind: str, what: object, error: Exception) -> None:
        """Count an error, and tell of it if it is the first one. Raises it if it is the store's."""
        if isinstance(error, StoreError):
            raise error
        self.counts[kind] += 1
        key = (kind, str(what), type(error).__name__)
        record = self.records.pop(key, None)
        is_new = record is None
        if record is None:
            text = f"{type(error).__name__}: {error}"
            record = Contained(kind, str(what), text, self._now())
        self.records[key] = record
        if len(self.records) > RECORDS_MAX:
            del self.records[next(iter(self.records))]
        record.count += 1
        record.last = self._now()
        if is_new and self.report is not None:
            self.report(record, error)

    def of(self, what: object) -> list[Contained]:
        """Return what was contained at one place, the latest last."""
        name = str(what)
        return [record for record in self.records.values() if record.what == name]

    def call(self, kind: str, part: Callable[..., object], *arguments: object) -> None:
        """Do one part of several; if it fails, the others are done all the same."""
        try:
            part(*arguments)
        except Exception as error:
            self.note_error(kind, part.__qualname__, error)

    def settle(
        self, receipts: Sequence[Receipt], call_soon: Callable[[Callable[[], None]], None]
    ) -> None:
        """Settle *receipts*, each for itself; those that fail are settled later."""
        for receipt in receipts:
            try:
                receipt.settle()
            except Exception as error:
                self.note_error("receipt", type(receipt).__name__, error)
                call_soon(receipt.settle)

    def at(self, kind: str, what: object) -> "Containing":
        """Return a `with` block that ends quietly where something in it fails."""
        return Containing(self, kind, what)


class Containing:
    """A block of code that harms nobody."""

    __slots__ = ("_containment", "_kind", "_what")

    def __init__(self, containment: Containment, kind: str, what: object) -> None:
        self._containment = containment
        self._kind = kind
        self._what = what

    def __enter__(self) -> None:
        """Begin."""

    def __exit__(
        self, _: object, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        """Contain what was raised."""
        if not isinstance(error, Exception):
            return False
        self._containment.note_error(self._kind, self._what, error)
        return True


def retry_delay(failures: int) -> int:
    """Return how long to wait after so many failures in a row, in ms."""
    return int(min(RETRY_MS << min(failures - 1, 16), RETRY_MS_MAX))
