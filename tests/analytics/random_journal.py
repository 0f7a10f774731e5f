"""Journals with records of every kind, sensible and not, in a random order."""

from pathlib import Path
from random import Random

from journal_maker import PRODUCER, START, JournalMaker, message_id, transaction

from lockkeeper.journal.decode import decode_record
from lockkeeper.journal.records import (
    AddMessage,
    Prepare,
    RemoveDestination,
    RemoveMessage,
    Subscription,
    UpdateMessage,
)
from lockkeeper.message.destination import Destination, queue, topic
from lockkeeper.message.ids import LocalTransactionId, MessageId, XATransactionId
from lockkeeper.message.openwire import (
    AckType,
    ActiveMQTextMessage,
    MessageAck,
    Structure,
    SubscriptionInfo,
    encode,
)
from lockkeeper.message.segments import STATES, SegmentName

TOPICS = (topic("T"), topic("U"))
GRAVES = (queue("ActiveMQ.DLQ"), queue("DLQ.A"))
OF_STREAMS = (
    SegmentName("orders", 1, 0).destination,
    queue("Lockkeeper.Stream.1024.00000000000000000000.orders"),
    STATES,
)
ORDINARY = (queue("A"), queue("B"), *TOPICS, *TOPICS)
PLACES = (*ORDINARY, *OF_STREAMS)
NAMES = ("one", "two")
LOCAL = (transaction(1), transaction(2))
XA = (XATransactionId(1, b"g", b"1"), XATransactionId(1, b"g", b"2"))
RECORDS = 120
IDS = 12
CAUSES = ("no such customer", "the message has Expired", "refused")
ACKS = (AckType.STANDARD, AckType.EXPIRED, AckType.POISON, AckType.UNMATCHED)


def framed(structure: Structure) -> bytes:
    """Return the bytes of *structure* as records hold them."""
    frame = encode(structure, 11)
    return len(frame).to_bytes(4, "big") + frame


class RandomJournal:
    """Writes records in several files; few *ids* meet often in few `places`."""

    places: tuple[Destination, ...] = PLACES

    def __init__(self, directory: Path, chance: Random, ids: int = IDS, drops: bool = True) -> None:
        self.maker = JournalMaker(directory)
        self.other = JournalMaker(directory.parent / "other")
        self.chance = chance
        self.ids = ids
        self.kinds = ["add"] * 10 + ["remove"] * 8 + ["subscribe"] * 2 + ["outcome"] * 3
        self.kinds += ["unsubscribe", "prepare", "update", "flush", "roll"]
        self.kinds += ["drop"] if drops else []
        self.came: list[tuple[Destination, int]] = []

    def write(self, records: int = RECORDS) -> Path:
        """Write a journal that ends with the roll-back of what is open, and return where it is."""
        for at in range(records):
            getattr(self, self.chance.choice(self.kinds))(at)
        for identifier in LOCAL:
            self.maker.rollback(identifier)
        self.maker.flush()
        return self.maker.directory

    def add(self, at: int) -> None:
        place, number = self.chance.choice(self.places), self._number()
        self.came.append((place, number))
        self.maker.add(number, at, place, tx=self._transaction())

    def remove(self, at: int) -> None:
        place = self.chance.choice(self.places)
        self.maker.remove(self._number(), place, self._transaction(), self._key(place))

    def update(self, at: int) -> None:
        self.other.waiting.clear()
        self.other.add(self._number(), at, self.chance.choice(self.places))
        self.maker.record(UpdateMessage(decode_record(self.other.waiting[0])))

    def subscribe(self, at: int) -> None:
        place, name = self.chance.choice(TOPICS), self.chance.choice(NAMES)
        info = SubscriptionInfo(client_id="ann", subscription_name=name, destination=place)
        is_retroactive = self.chance.random() < 0.3
        self.maker.record(Subscription(place, f"ann:{name}", is_retroactive, framed(info)))

    def unsubscribe(self, at: int) -> None:
        place, name = self.chance.choice(TOPICS), self.chance.choice(NAMES)
        self.maker.record(Subscription(place, f"ann:{name}"))

    def outcome(self, at: int) -> None:
        identifier = self.chance.choice(LOCAL + XA)
        (self.maker.commit if self.chance.random() < 0.7 else self.maker.rollback)(identifier)

    def prepare(self, at: int) -> None:
        self.maker.record(Prepare(self.chance.choice(XA)))

    def drop(self, at: int) -> None:
        self.maker.record(RemoveDestination(self.chance.choice(self.places)))

    def flush(self, at: int) -> None:
        if self.maker.waiting:
            self.maker.flush()

    def roll(self, at: int) -> None:
        self.flush(at)
        if self.maker.path.exists():
            self.maker.roll()

    def _number(self) -> int:
        return self.chance.randrange(self.ids)

    def _key(self, place: Destination) -> str | None:
        return f"ann:{self.chance.choice(NAMES)}" if place.is_topic else None

    def _transaction(self) -> LocalTransactionId | XATransactionId | None:
        return self.chance.choice(LOCAL + XA) if self.chance.random() < 0.3 else None


class RandomStory(RandomJournal):
    """Adds dead letters, acknowledgements with their kind, copies with ids of their own, times."""

    places = (*PLACES, *GRAVES)

    def __init__(self, directory: Path, chance: Random, ids: int = IDS, drops: bool = True) -> None:
        super().__init__(directory, chance, ids, drops)
        self.kinds += ["dead_letter"] * 6 + ["acknowledge"] * 4 + ["copy"] * 3 + ["clock"] * 2

    def dead_letter(self, at: int) -> None:
        origin, number = self._known()
        place = self.chance.choice((*self.places, *GRAVES, *GRAVES, *GRAVES))
        self.came.append((place, number))
        self.maker.add(
            number,
            at,
            place,
            tx=self._transaction(),
            properties={"dlqDeliveryFailureCause": self.chance.choice(CAUSES)},
            original_destination=origin,
        )

    def acknowledge(self, at: int) -> None:
        (place, number), kind = self._known(), self.chance.choice(ACKS)
        ack = framed(MessageAck(destination=place, ack_type=kind, message_count=1))
        key, identifier = self._key(place), message_id(number)
        self.maker.record(RemoveMessage(place, identifier, ack, key, self._transaction()))

    def _known(self) -> tuple[Destination, int]:
        """Return where a message came, and which one; now and then one that never did."""
        other = self.chance.choice(self.places), self._number()
        return self.chance.choice([*self.came, other])

    def copy(self, at: int) -> None:
        place, number = self.chance.choice(self.places), self._number()
        made = ActiveMQTextMessage(
            producer_id=PRODUCER,
            destination=place,
            message_id=MessageId(PRODUCER, number, number, message_id(self._number())),
            persistent=True,
            timestamp=START + at,
            content=b"\0\0\0\2hi",
            broker_in_time=START + at,
        )
        self.maker.record(AddMessage(place, message_id(number), framed(made)))

    def clock(self, at: int) -> None:
        self.maker.clock(at)
