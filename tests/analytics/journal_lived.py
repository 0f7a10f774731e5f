"""A journal with a bit of everything: traffic, a take-over, dead letters, retries, consumers."""

from pathlib import Path

from journal_maker import START, JournalMaker

from lockkeeper.message.destination import Destination, queue

ORDERS, MAILS, LETTERS = queue("ORDERS"), queue("MAILS"), queue("ActiveMQ.DLQ")
SECONDS = 120
TAKEOVER = 60
"""In which second the second replica takes over, after ten silent ones."""
CAUSES = ("java.lang.Throwable: out of stock", "no such customer: ID:shop-1-77:4 <b>'%")
OUTAGE = range(30, 50)
"""The seconds in which nobody acknowledges orders."""


def lived(directory: Path, each_second: int = 3) -> Path:
    """Write the journal of two minutes, and return its directory.

    Each second brings *each_second* orders and one mail. Orders take 40 ms, those of the OUTAGE
    until its end. Every tenth order dies of one of CAUSES; the first of them is sent back once.
    """
    maker = JournalMaker(directory)
    who = {"connection": "ID:worker-1:1", "clientId": "worker", "address": "10.0.0.7"}
    consumer = {"consumer": "ID:worker-1:1:1:1", "destination": str(ORDERS), "prefetch": 100}
    maker.line("event", 0, event="start", broker="shop", replica="shop-0", epoch=1)
    maker.line("event", 0, event="connectionOpened", broker="shop", **who)
    maker.line("event", 0, event="consumerOpened", broker="shop", **who, **consumer).flush()
    number = 0
    late: list[int] = []
    for second in range(SECONDS):
        if TAKEOVER - 10 <= second < TAKEOVER:
            continue
        at = 1000 * second
        if second == TAKEOVER:
            cause = "the master before did not stop cleanly"
            told = {"broker": "shop", "replica": "shop-1", "epoch": 2, "cause": cause}
            maker.line("event", at, event="takeover", **told).flush()
        maker.clock(at)
        came = []
        for _ in range(each_second):
            number += 1
            came.append(number)
            maker.add(number, at, ORDERS, correlation_id=f"order-{number}")
        maker.add(100_000 + second, at, MAILS, correlation_id=f"order-{number}").flush()
        late += came
        if second in OUTAGE:
            continue
        maker.clock(at + 40)
        for each in late:
            if each % 10 == 0:
                _die(maker, each, at + 40)
            maker.remove(each, ORDERS)
        maker.flush()
        late.clear()
    maker.clock(1000 * SECONDS).add(10, 1000 * SECONDS, ORDERS, correlation_id="order-10")
    maker.remove(10, LETTERS).flush()
    maker.line("event", 1000 * SECONDS + 50, event="stop", broker="shop", replica="shop-1").flush()
    return directory


def _die(maker: JournalMaker, number: int, at: int) -> None:
    """Put the copy of an order into the dead letter queue."""
    maker.add(
        number,
        at,
        LETTERS,
        properties={"dlqDeliveryFailureCause": CAUSES[number // 10 % len(CAUSES)]},
        original_destination=ORDERS,
        redelivery_counter=6,
        correlation_id=f"order-{number}",
    )


def moment(second: int) -> int:
    """Return a second of the journal in ms since the epoch."""
    return START + 1000 * second


def destinations(directory: Path, count: int, name: str = "Q.{}") -> Path:
    """Write a journal with a message, acknowledged a second later, in each of *count* queues."""
    maker = JournalMaker(directory)
    maker.clock(0)
    places: list[Destination] = [queue(name.format(number)) for number in range(count)]
    for number, place in enumerate(places):
        maker.add(number, 0, place)
    maker.flush().clock(1000)
    for number, place in enumerate(places):
        maker.remove(number, place)
    maker.flush()
    return directory
