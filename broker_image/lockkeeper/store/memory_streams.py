"""Streams of the memory store: messages stay until their segment is dropped."""

from collections.abc import Sequence
from itertools import count

from lockkeeper.message.destination import Destination
from lockkeeper.message.segments import SegmentName
from lockkeeper.store.base import GoneError, Reference
from lockkeeper.store.segment import Entry, MemoryOctets, Segment


class MemoryStreams:
    """Segments and their messages, by locations that are numbers; see `StreamStore`."""

    def __init__(self) -> None:
        self.segments: dict[Destination, Segment] = {}
        self._frames: dict[int, tuple[Destination, bytes]] = {}
        self._locations = count(1)

    def begin(self, name: SegmentName) -> Segment:
        """See `StreamStore.begin`."""
        segment = Segment(name, MemoryOctets(), MemoryOctets())
        self.segments[name.destination] = segment
        return segment

    def keep(self, destination: Destination, reference: Reference) -> None:
        """Keep a message of a segment."""
        reference.location = next(self._locations)
        self._frames[reference.location] = (destination, reference.loaded.body)

    def read_frames(self, entries: Sequence[Entry]) -> list[bytes]:
        """See `StreamStore.read_frames`."""
        return [self._frames.get(entry.location, (None, b""))[1] for entry in entries]

    def frame_at(self, location: int) -> tuple[Destination, bytes]:
        """See `StreamStore.frame_at`."""
        if location not in self._frames:
            raise GoneError(f"nothing is at {location}")
        return self._frames[location]

    def drop(self, segment: Segment) -> None:
        """See `StreamStore.drop`."""
        for entry in segment.entries(segment.base, len(segment)):
            self._frames.pop(entry.location, None)
        self.segments.pop(segment.destination, None)
        segment.forget()

    def release(self, entries: Sequence[Entry]) -> None:
        """See `StreamStore.release`."""
        for entry in entries:
            self._frames.pop(entry.location, None)
