"""Dead letters among the messages of a directory: those that died into where they are held.

Of one that somebody moved back or on, which leaves its cause as it is, two of three signs are
missing: that it had not been where it came from with the same cause; that it came from no dead
letter queue; that it came to one. Of what is not known to have been where it came from, the first
is missing where that has the name of a dead letter queue of where it came to.
"""

from collections import Counter
from collections.abc import Sequence

from sequential_entries import Entry, Place

from lockkeeper.message.segments import SEGMENT_PREFIX

SHARED = ("queue", "ActiveMQ.DLQ")

RecordPlace = tuple[int, int]
"""The number of a record's data file, and where it lies in it."""


def letters_among(held: Sequence[Entry]) -> set[RecordPlace]:
    """Return the places of the records that hold dead letters.

    *held* are all records that hold messages, in the order in which they took effect.
    """
    told = [
        each for each in held if each.dead_letter_cause is not None and not _is_of_streams(each)
    ]
    counts = Counter(each.place for each in held)
    letters = Counter(each.place for each in told)
    moved = _moved(held, {place for place in counts if 2 * letters[place] < counts[place]})
    died = {each.place for each in told if record_place(each) not in moved}
    queues = {place for place in died if 2 * letters[place] > counts[place]} | {SHARED}
    return {
        record_place(each)
        for each in told
        if sum((record_place(each) not in moved, _origin(each) not in queues, each.place in queues))
        >= 2
    }


def _moved(held: Sequence[Entry], ordinary: set[Place]) -> set[RecordPlace]:
    """Return the records of letters that came from where they had been with the same cause.

    And of those that came from a dead letter queue by its name: not from where they had been before
    they died, and not from an *ordinary* queue, to which other messages came above all.
    """
    there: set[tuple[Place, str]] = set()
    dead_there: set[tuple[Place, str, str | None]] = set()
    moved = set()
    for each in held:
        shown, origin = each.copy_of or each.message_id or "", _origin(each)
        cause = each.dead_letter_cause
        if cause is not None and not _is_of_streams(each):
            is_unknown = (origin, shown) not in there and origin not in ordinary
            if (
                origin[1] == SHARED[1]
                or (origin, shown, cause) in dead_there
                or (is_unknown and _is_grave_of(origin, each.place))
            ):
                moved.add(record_place(each))
            dead_there.add((each.place, shown, cause))
        there.add((each.place, shown))
    return moved


def _is_grave_of(origin: Place, place: Place) -> bool:
    """Tell by its name whether *origin* is where the messages of *place* die into."""
    (one, other) = (f".{name or ''}." for name in (origin[1], place[1]))
    return one != other and other in one and ".DLQ." not in other


def _origin(entry: Entry) -> Place:
    """Return where a message was before it was moved; without a move, where it is."""
    if entry.original_destination is None:
        return entry.place
    kind, _, name = entry.original_destination.partition("://")
    return kind, name


def record_place(entry: Entry) -> RecordPlace:
    """Return where the record of *entry* is."""
    return entry.file_id, entry.offset


def _is_of_streams(entry: Entry) -> bool:
    name = entry.destination or ""
    return entry.destination_kind == "queue" and name.startswith(SEGMENT_PREFIX)
