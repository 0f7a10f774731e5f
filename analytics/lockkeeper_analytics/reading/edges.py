"""Times that are known where a part begins, and the next one behind its end.

Within a file times are handed on from its first record to its last. A file looks at its
neighbours' edges only, LOOK_BYTES of each: what is told of its records depends on the files that
there are, never on how they are cut.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from lockkeeper_analytics.reading.batches import last_batches, read_chunks
from lockkeeper_analytics.reading.located import Located, located
from lockkeeper_analytics.reading.partitions import Neighbour, Part, rewritten_from
from lockkeeper_analytics.reading.pins import gone
from lockkeeper_analytics.reading.storage import sibling_in_archive
from lockkeeper_analytics.reading.times import Bounds, Known, Passed

LOOK_BYTES = 256 * 1024
_T = TypeVar("_T")


def timed(part: Part, records: Iterable[Located]) -> Iterator[tuple[Located, Bounds]]:
    """Yield the chunks of *part* with the bounds of their records.

    A chunk waits until the next time is told: memory holds what lies between two. Raises OSError,
    and what `located` raises.
    """
    known = preceding_known(part)
    waiting: list[tuple[Located, Passed]] = []
    for each in records:
        passed = each.passed_over(known)
        known = passed.known
        if passed.first_told:
            yield from _bounded(waiting, passed.first_told)
            waiting.clear()
        waiting.append((each, passed))
    is_settled = all(passed.is_settled for _, passed in waiting)
    yield from _bounded(waiting, 0 if is_settled else following_time(part))


def _bounded(
    waiting: list[tuple[Located, Passed]], following: int
) -> Iterator[tuple[Located, Bounds]]:
    for each, passed in waiting:
        yield each, passed.bounds(following)


def preceding_known(part: Part) -> Known:
    """Return what is known where *part* begins, by its file and the ends of those before it."""
    known = _before_file(part)
    if part.start:
        # A stream goes on in the middle of a file.
        for each in _own(part, 0, part.start):
            known = each.passed_over(known).known
    return known


def _before_file(part: Part) -> Known:
    for number, neighbour in enumerate(part.before):
        known = _known_behind(neighbour)
        if known.last:
            # Whether the clock was kept on in a file between, nobody has looked.
            return known if number == 0 else Known(known.last)
    return Known()


def following_time(part: Part) -> int:
    """Return the first time that is told behind *part*, 0 for none near."""
    if part.end is not None and not part.is_pinned:
        for each in _own(part, part.end, None):
            if first := each.passed_over(Known()).first_told:
                return first
    for neighbour in part.behind:
        if first := first_told(neighbour):
            return first
    return 0


def _own(part: Part, start: int, end: int | None) -> Iterator[Located]:
    """Yield what else is in the file of *part*; damage is told of by who reads it."""
    for chunk in read_chunks(part.path, start, end, skip_corrupt=True):
        yield located(chunk, part.path, skip_corrupt=True)


def _known_behind(neighbour: Neighbour) -> Known:
    """Return what is known behind a file by its last batches."""

    def look(path: str) -> Known:
        chunk = last_batches(path, LOOK_BYTES, neighbour.end)
        if chunk is None:
            return Known()
        return located(chunk, path, skip_corrupt=True).passed_over(Known()).known

    return _seen(neighbour, look) or Known()


def first_told(neighbour: Neighbour) -> int:
    """Return the first time that a file tells at its head, 0 for none. Raises GoneError."""
    behind = LOOK_BYTES if neighbour.end is None else min(LOOK_BYTES, neighbour.end)

    def look(path: str) -> int:
        for chunk in read_chunks(path, 0, behind, True, LOOK_BYTES):
            if first := located(chunk, path, skip_corrupt=True).passed_over(Known()).first_told:
                return first
        return 0

    return _seen(neighbour, look) or 0


def _seen(neighbour: Neighbour, look: Callable[[str], _T]) -> _T | None:
    """Return what *look* sees of a file, wherever it is by now; None: nothing that counts.

    One that holds again what another held tells of times when that was written. Raises GoneError
    when a file that was pinned is not there.
    """
    for path in (neighbour.path, sibling_in_archive(neighbour.path)):
        try:
            return None if rewritten_from(path) else look(path)
        except FileNotFoundError:
            continue
        except OSError:
            return None
    if neighbour.end is not None:
        raise gone(neighbour.path)
    return None
