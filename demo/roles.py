"""What the processes of the demo do: producers publish departures, workers process them."""

import json
from array import array
from collections.abc import Callable
from multiprocessing.queues import Queue as EventQueue
from multiprocessing.synchronize import Event
from typing import Any, TypeAlias

import flights

from lockkeeper.client import (
    MessagingError,
    Session,
    TransactionInDoubtError,
    TransactionRolledBackError,
    connect,
)

PUBLISH_BATCH = 200
WORK_BATCH = 200
IDLE_SECONDS = 0.5

Events: TypeAlias = "EventQueue[tuple[str, Any]]"


def produce(url: str, part: int, parts: int, total: int, events: Events) -> None:
    """Publish one part of the departures, in transactions; a lost one is sent again."""
    batch: list[flights.Departure] = []
    with connect(url) as connection:
        session = connection.session(transacted=True)
        producer = session.producer()

        def publish() -> None:
            for departure in batch:
                producer.send(departure.body, destination=departure.queue)

        for departure in flights.departures(total, part, parts):
            batch.append(departure)
            if len(batch) == PUBLISH_BATCH:
                _until_committed(session, publish, events)
                events.put(("published", len(batch)))
                batch.clear()
        _until_committed(session, publish, events)
        events.put(("published", len(batch)))


def _until_committed(session: Session, send: Callable[[], None], events: Events) -> None:
    """Send and commit; again, when the broker was lost before it said that it did."""
    while True:
        try:
            send()
            session.commit()
            return
        except TransactionRolledBackError:
            events.put(("resent", 1))


def work(url: str, number: int, finished: Event, events: Events) -> None:
    """Process departures in transactions until told to finish; reject the cancelled ones."""
    with connect(url) as connection:
        session = connection.session(transacted=True)
        consumer = session.consumer(flights.QUEUES + ">")
        done: array[int] = array("l")
        while not finished.is_set():
            message = consumer.receive(IDLE_SECONDS)
            if message is not None:
                flight = json.loads(str(message.body))
                if flights.is_cancelled(flight):
                    message.reject("the flight was cancelled")
                    events.put(("rejected", 1))
                else:
                    done.append(flight["departure"])
            if len(done) >= WORK_BATCH or (message is None and done):
                if _was_processed(session, events):
                    events.put(("processed", done.tobytes()))
                done = array("l")


def _was_processed(session: Session, events: Events) -> bool:
    """Commit and tell whether the work counts.

    It does when the broker was lost at this very moment: the commit may have happened, and if it
    has not, the departures come again and are counted as duplicates.
    """
    try:
        session.commit()
    except TransactionInDoubtError:
        events.put(("in_doubt", 1))
    except TransactionRolledBackError:
        events.put(("redelivered", 1))
        return False
    return True


def guarded(role: Callable[..., None], *arguments: Any) -> None:
    """Run a role; tell the parent, by the last argument, when it fails."""
    try:
        role(*arguments)
    except KeyboardInterrupt:
        return
    except (MessagingError, OSError) as error:
        arguments[-1].put(("failed", f"{role.__name__}: {error}"))
