"""Lives of messages, transactions, subscriptions and files, as histories keep them."""

from typing import NamedTuple

from sequential_entries import Entry, Place

PENDING, IN_DOUBT, OPEN = "pending", "in_doubt", "open"
ACKNOWLEDGED, UNMATCHED, EXPIRED = "acknowledged", "unmatched", "expired"
DEAD_LETTERED, DROPPED, UNWANTED = "dead_lettered", "dropped", "unwanted"
DUPLICATE, ROLLED_BACK, COMMITTED, PREPARED = "duplicate", "rolled_back", "committed", "prepared"
THERE = (PENDING, IN_DOUBT, OPEN)
POISON = "poison"
EXPIRED_IN_CAUSE = "expired"
"""Both brokers say so in the cause of a dead letter whose time was over."""


NOBODY: dict[str, None] = {}
"""What waits for a message of a queue; it stays empty."""


class Moment(NamedTuple):
    """When something took effect, in microseconds since the epoch; None: not known."""

    earliest: int | None
    latest: int | None


class End:
    """The end of a message, or of one subscription's part in it."""

    __slots__ = ("at", "cause", "dead_letter", "entry")

    def __init__(self, entry: Entry, at: Moment) -> None:
        self.entry = entry
        self.at = at
        self.dead_letter: str | None = None
        self.cause: str | None = entry.ack_cause

    @property
    def outcome(self) -> str:
        """What came of the message here."""
        kind, cause = self.entry.ack_type, self.cause
        if kind == EXPIRED or (cause is not None and EXPIRED_IN_CAUSE in cause.lower()):
            return EXPIRED
        if self.dead_letter is not None or kind == POISON:
            return DEAD_LETTERED
        return UNMATCHED if kind == UNMATCHED else ACKNOWLEDGED

    def moved(self, target: str, cause: str | None) -> None:
        """Note that the message went to a dead letter queue."""
        self.dead_letter, self.cause = target, cause or self.cause


class Message:
    """A message from its add on; `waiting` are the subscriptions that still want it.

    `at` is when it took effect, `over` when nothing wanted it any more, None while it is there.
    """

    __slots__ = (
        "at",
        "copies",
        "ends",
        "entry",
        "facts",
        "located",
        "moves",
        "over",
        "state",
        "waiting",
    )

    def __init__(self, entry: Entry, at: Moment, state: str = PENDING) -> None:
        self.entry = entry
        self.located = entry
        self.facts = entry.facts
        self.at = at
        self.state = state
        self.over = None if state in THERE else at
        # Containers are made when they are needed: there is one of these for each live message.
        self.waiting: dict[str, None] = NOBODY
        self.ends: tuple[End, ...] = ()
        self.moves: tuple[tuple[str, str | None], ...] = ()
        self.copies: tuple[int, ...] = ()

    @property
    def outcome(self) -> str:
        """What has come of the message so far."""
        if self.state != ACKNOWLEDGED:
            return self.state
        if len(self.ends) == 1:
            return self.ends[0].outcome
        outcomes = {end.outcome for end in self.ends}
        for outcome in (DEAD_LETTERED, EXPIRED, ACKNOWLEDGED):
            if outcome in outcomes:
                return outcome
        return UNMATCHED if outcomes else DROPPED

    @property
    def last(self) -> End | None:
        """What ended it; None while it is there, be it for one subscription only."""
        return self.ends[-1] if self.ends and self.over is not None else None

    @property
    def dead_letter(self) -> End | None:
        """The end that made it a dead letter."""
        return next((end for end in self.ends if end.dead_letter is not None), None)


class Transaction:
    """A transaction from its first record on, with what waits for its outcome."""

    __slots__ = ("files", "first", "operations", "outcome", "prepared", "removed", "settled")

    def __init__(self, first: Entry) -> None:
        self.first = first
        self.operations: list[Entry] = []
        self.files: set[int] = set()
        self.prepared: Entry | None = None
        self.settled: Entry | None = None
        self.outcome = OPEN
        self.removed = 0

    def count(self, kind: str) -> int:
        """Return how many of the operations are *kind*."""
        return sum(operation.kind == kind for operation in self.operations)


class Subscription:
    """A durable subscription from its create record on; it `needs` files to be what it is."""

    __slots__ = (
        "acknowledged",
        "create_files",
        "end",
        "entry",
        "last",
        "needs",
        "state",
        "unmatched",
    )

    def __init__(self, entry: Entry) -> None:
        self.entry = entry
        self.create_files = {entry.file_id}
        self.needs = {entry.file_id}
        self.state = "live"
        self.end: Entry | None = None
        self.last: End | None = None
        self.acknowledged = 0
        self.unmatched = 0


class FileLife:
    """One data file: what its records are, and the files of messages that they end."""

    __slots__ = ("adds", "after", "before", "file_id", "records", "refers", "removes")

    def __init__(self, file_id: int) -> None:
        self.file_id = file_id
        self.records = self.adds = self.removes = 0
        self.after: int | None = None
        self.before: int | None = None
        self.refers: set[int] = set()

    def note(self, entry: Entry) -> None:
        """Count a record."""
        self.records += 1
        self.adds += entry.kind == "add"
        self.removes += entry.kind == "remove"
        self.after = self.after if self.after is not None else entry.written_after
        self.before = entry.written_before or entry.written_after or self.before


class DestinationLife:
    """One destination: its live messages in order, its subscriptions, and what it has seen."""

    __slots__ = (
        "creations",
        "ends",
        "files",
        "first",
        "is_removed",
        "last",
        "live",
        "place",
        "stored",
        "stored_bytes",
        "subscriptions",
    )

    def __init__(self, place: Place) -> None:
        self.place = place
        self.live: dict[str, Message] = {}
        self.subscriptions: dict[str, Subscription] = {}
        self.files: set[int] = set()
        self.creations: set[int] = set()
        self.ends: dict[str, int] = {}
        self.stored = self.stored_bytes = 0
        self.first: int | None = None
        self.last: int | None = None
        self.is_removed = False

    def note_end(self, outcome: str, count: int = 1) -> None:
        """Count messages that ended so."""
        self.ends[outcome] = self.ends.get(outcome, 0) + count
