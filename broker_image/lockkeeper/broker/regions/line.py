"""A long line of messages that wait: its ends are references, what is between is packed.

Used as a deque is, by whoever need not know. The first of its messages is always a reference.
"""

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Final

from lockkeeper.broker.regions.stretch import Part, Stretch
from lockkeeper.broker.shared_references import SharedReferences
from lockkeeper.store.base import UNKNOWN, Reference
from lockkeeper.store.packed import (
    RUN_BYTES,
    RUN_MESSAGES,
    RUN_MESSAGES_MIN,
    PackedRun,
    is_packable,
)

# A shorter line stays a deque: what consumers are about to get is not worth packing.
LINE_MESSAGES_MIN = 8 * RUN_MESSAGES

Segment = PackedRun | Part | deque[Reference]


class Line:
    """The front, segments of it packed or not, and the back."""

    __slots__ = ("_back", "_between", "_front", "_segments")

    def __init__(self, references: Iterable[Reference] = ()) -> None:
        self._front: deque[Reference] = deque()
        self._segments: deque[Segment] = deque()
        # How many messages are in the segments.
        self._between = 0
        self._back: deque[Reference] = deque(references)
        if self._back:
            self._advance()

    def __len__(self) -> int:
        """Return how many messages wait."""
        return len(self._front) + self._between + len(self._back)

    def __iter__(self) -> Iterator[Reference]:
        """Iterate in order; what is packed is only shown: changes to it are lost."""
        middle = (
            segment.shown() if isinstance(segment, PackedRun) else segment
            for segment in self._segments
        )
        return chain(self._front, chain.from_iterable(middle), self._back)

    def __getitem__(self, index: int) -> Reference:
        """Return the next message: only index 0 is there."""
        if index:
            raise IndexError("only the next message can be looked at")
        return self._front[0]

    def append(self, reference: Reference) -> None:
        """Add a message at the end."""
        self._back.append(reference)
        if not self._front:
            self._advance()

    def extend(self, references: Iterable[Reference]) -> None:
        """Add messages at the end."""
        self._back.extend(references)
        if not self._front:
            self._advance()

    def append_run(self, run: PackedRun) -> None:
        """Add packed messages at the end."""
        self._append(run)

    def append_shared(self, references: SharedReferences) -> None:
        """Add messages at the end that other lines are given, too; what comes next is the same."""
        last = self._segments[-1] if self._segments and not self._back else None
        part: Part | None = references.kept
        if part is None:
            stretch = Stretch()
            if isinstance(last, Part) and last.is_open():
                stretch = last.stretch
            part = references.kept = stretch.add(references)
        if isinstance(last, Part) and last.stretch is part.stretch and last.end == part.start:
            last.end = part.end
            self._between += len(part)
        else:
            self._append(Part(part.stretch, part.start, part.end))

    def _append(self, segment: Segment) -> None:
        if self._back:
            self._add(self._back)
            self._back = deque()
        self._add(segment)
        if not self._front:
            self._advance()

    def appendleft(self, reference: Reference) -> None:
        """Put a message before all others."""
        self._front.appendleft(reference)

    def extendleft(self, references: Iterable[Reference]) -> None:
        """Put messages, one after the other, each before all others."""
        self._front.extendleft(references)

    def popleft(self) -> Reference:
        """Take the next message."""
        reference = self._front.popleft()
        if not self._front:
            self._advance()
        return reference

    def clear(self) -> None:
        """Forget everything."""
        self.__init__()  # type: ignore[misc]

    def _add(self, segment: Segment) -> None:
        self._segments.append(segment)
        self._between += len(segment)

    def _advance(self) -> None:
        """Let what comes next be the front."""
        while self._segments:
            segment = self._segments.popleft()
            self._between -= len(segment)
            if segment:
                self._front = _taken(segment)
                return
        self._front, self._back = self._back, self._front

    # What is packed

    def pack(self) -> None:
        """Pack what can be packed by now."""
        segments, self._segments, self._between = self._segments, deque(), 0
        back, self._back = self._back, deque()
        for segment in (*segments, back):
            for piece in _pieces(segment) if isinstance(segment, deque) else (segment,):
                self._add(piece)
        if self._segments and isinstance(last := self._segments[-1], deque):
            self._segments.pop()
            self._between -= len(last)
            self._back = last

    def shared(self) -> Iterator[Stretch | PackedRun]:
        """Yield what other lines may have, too, and might be packed."""
        for segment in self._segments:
            if isinstance(segment, Part):
                if segment.is_whole():
                    yield segment.stretch
            elif isinstance(segment, PackedRun) and segment.is_taken():
                yield segment

    def replace(self, runs: Mapping[Stretch, PackedRun]) -> None:
        """Have packed runs in the place of what is shared with other lines."""
        for index, segment in enumerate(self._segments):
            if isinstance(segment, Part) and segment.stretch in runs:
                self._segments[index] = runs[segment.stretch]

    def leave_packed(self, release: Callable[[PackedRun], None]) -> None:
        """Forget packed runs without unpacking them: what nobody else has is for *release*."""
        left: deque[Segment | Part] = deque()
        for segment in self._segments:
            if isinstance(segment, PackedRun):
                if segment.leave():
                    continue
                if segment.is_only_stored():
                    release(segment)
                    continue
            left.append(segment)
        self._segments = left
        self._between = sum(map(len, self._segments))

    def loose(self) -> Iterator[Reference]:
        """Iterate over what is not packed, in order."""
        middle = (each for each in self._segments if not isinstance(each, PackedRun))
        return chain(self._front, chain.from_iterable(middle), self._back)

    def upcoming(self) -> Iterable[Reference]:
        """Return the next messages, as far as they are not packed."""
        return self._front

    def withdraw(self, references: set[Reference]) -> None:
        """Take out some of what is not packed."""
        for index, segment in enumerate(self._segments):
            if isinstance(segment, Part) and not references.isdisjoint(segment):
                self._segments[index] = deque(segment)
        for segment in self.segments():
            if isinstance(segment, deque):
                withdraw(segment, references)
        self._between = sum(map(len, self._segments))
        if not self._front:
            self._advance()

    def reveal(self, now: int, page: int, learn: Callable[[PackedRun], None]) -> int | None:
        """Unpack runs with expired messages; return when the next one expires that is packed.

        *learn* finds out when the messages of a run expire. It is done with about a *page* of
        messages: then the answer is *now*.
        """
        earliest: int | None = None
        for index, segment in enumerate(self._segments):
            if not isinstance(segment, PackedRun):
                continue
            if page <= 0:
                return now
            if segment.earliest() == UNKNOWN:
                learn(segment)
                page -= len(segment)
            expiration = segment.earliest()
            if expiration is None:
                continue
            if expiration < now:
                self._segments[index] = _taken(segment)
                page -= len(segment)
            elif earliest is None or expiration < earliest:
                earliest = expiration
        return earliest

    def segments(self) -> list[Segment]:
        """Return everything, in order."""
        return [self._front, *self._segments, self._back]


class _Nothing(Line):
    """The line of all queues that nothing was sent to; whoever adds to it would add to all."""

    __slots__ = ()

    def append(self, reference: Reference) -> None:
        """See `Line.append`. Raises TypeError."""
        raise TypeError(_SHARED)

    def extend(self, references: Iterable[Reference]) -> None:
        """See `Line.extend`. Raises TypeError."""
        raise TypeError(_SHARED)

    def appendleft(self, reference: Reference) -> None:
        """See `Line.appendleft`. Raises TypeError."""
        raise TypeError(_SHARED)

    def extendleft(self, references: Iterable[Reference]) -> None:
        """See `Line.extendleft`. Raises TypeError."""
        raise TypeError(_SHARED)

    def _append(self, segment: Segment) -> None:
        raise TypeError(_SHARED)


_SHARED = "a queue has to begin a line of its own first"
NOTHING: Final = _Nothing()
"""What waits in a queue that nothing was sent to: an empty deque would weigh 760 bytes."""


class Snapshot:
    """Messages that waited at one time; iteration passes over those that have ended since."""

    __slots__ = ("_borrowed", "_count", "_current", "_segments")

    def __init__(self, segments: Iterable[Segment]) -> None:
        copied = (each if isinstance(each, PackedRun) else deque(each) for each in segments)
        self._segments: deque[PackedRun | deque[Reference]] = deque(copied)
        self._current: deque[Reference] = deque()
        self._borrowed: PackedRun | None = None
        self._count = sum(map(len, self._segments))

    def __len__(self) -> int:
        """Return how many messages have not been looked at."""
        return self._count

    def __iter__(self) -> Iterator[Reference]:
        """Take all of it."""
        while self._count:
            yield self.popleft()

    def popleft(self) -> Reference:
        """Look at the next message."""
        while not self._current:
            self._advance()
        self._count -= 1
        return self._current.popleft()

    def _advance(self) -> None:
        self.close()
        segment = self._segments.popleft()
        if isinstance(segment, PackedRun):
            self._borrowed = segment
            self._current = deque(segment.borrow())
        else:
            self._current = segment

    def close(self) -> None:
        """Look no more at what is borrowed."""
        if self._borrowed is not None:
            self._borrowed.give_back()
            self._borrowed = None


def _taken(segment: Segment) -> deque[Reference]:
    if isinstance(segment, deque):
        return segment
    return deque(segment.take_references() if isinstance(segment, PackedRun) else segment)


def _pieces(references: deque[Reference]) -> Iterator[Segment]:
    """Divide *references* into full runs, packed, and what is between them."""
    run: list[Reference] = []
    loose: deque[Reference] = deque()
    size = 0
    for reference in references:
        if not is_packable(reference):
            loose.extend(run)
            loose.append(reference)
            run.clear()
            size = 0
            continue
        run.append(reference)
        size += reference.size
        if len(run) == RUN_MESSAGES or (size > RUN_BYTES and len(run) >= RUN_MESSAGES_MIN):
            size = 0
            if loose:
                yield loose
                loose = deque()
            yield PackedRun(run)
            run.clear()
    loose.extend(run)
    if loose:
        yield loose


def packed(ready: "deque[Reference] | Line") -> "deque[Reference] | Line":
    """Return a line with the middle packed, if it is worth that."""
    if isinstance(ready, deque):
        if len(ready) < LINE_MESSAGES_MIN:
            return ready
        line = Line(islice(ready, RUN_MESSAGES))
        line.extend(islice(ready, RUN_MESSAGES, None))
        ready = line
    ready.pack()
    return ready


def pack_shared(lines: Sequence[Line]) -> None:
    """Pack what waits in several lines, all of one topic, and what nobody else needs."""
    holders: Counter[Stretch | PackedRun] = Counter()
    for line in lines:
        holders.update(line.shared())
    runs: dict[Stretch, PackedRun] = {}
    for shared, count in holders.items():
        if isinstance(shared, PackedRun):
            shared.pack_again(count)
        elif (run := shared.packed(count)) is not None:
            runs[shared] = run
    if runs:
        for line in lines:
            line.replace(runs)


def withdraw(ready: "deque[Reference] | Line", references: set[Reference]) -> None:
    """Take out messages that are not packed, wherever they are."""
    if isinstance(ready, Line):
        ready.withdraw(references)
        return
    kept = [reference for reference in ready if reference not in references]
    ready.clear()
    ready.extend(kept)
