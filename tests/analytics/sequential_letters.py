"""Dead letters among the messages of a directory: those that died into where they are held.

Of one that somebody moved back or on, which leaves its cause as it is, two of three signs are
missing: that it had not been where it came from with the same cause, and that this has no name of a
dead letter queue of where it came to; that it came from no dead letter queue; that it came to one.
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
    moved = _moved(told)
    counts = Counter(each.place for each in held)
    letters = Counter(each.place for each in told)
    died = {each.place for each in told if record_place(each) not in moved}
    queues = {place for place in died if 2 * letters[place] > counts[place]} | {SHARED}
    return {
        record_place(each)
        for each in told
        if sum((record_place(each) not in moved, _origin(each) not in queues, each.place in queues))
        >= 2
    }


def _moved(told: Sequence[Entry]) -> set[RecordPlace]:
    """Return the records of letters that came from where they had been with the same cause.

    And of those that came, by its name, from a dead letter queue.
    """
    known: set[tuple[Place, str, str | None]] = set()
    moved = set()
    for each in told:
        shown = each.copy_of or each.message_id or ""
        origin = _origin(each)
        if _is_grave_of(origin, each.place) or (origin, shown, each.dead_letter_cause) in known:
            moved.add(record_place(each))
        known.add((each.place, shown, each.dead_letter_cause))
    return moved


def _is_grave_of(origin: Place, place: Place) -> bool:
    """Tell by its name whether *origin* is where the messages of *place* die into."""
    names = origin[1] or "", place[1] or ""
    if names[0] == SHARED[1]:
        return True
    (one, other) = (f".{name}." for name in names)
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
