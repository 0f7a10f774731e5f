"""Bindings: which queues an exchange leads to, kept on the broker where every process sees them.

An exchange's bindings are persistent messages of the queue `kombu.bindings.EXCHANGE`, which nobody
consumes: whoever publishes browses it once, and again when the topic `kombu.bindings` says that it
has changed. Works with every broker that speaks OpenWire.
"""

import json
import threading
import time
from collections.abc import Iterator
from typing import NamedTuple

from lockkeeper.client.blocking.consumer import Consumer
from lockkeeper.client.blocking.session import Session
from lockkeeper.integrations.kombu.exchanges import fits
from lockkeeper.message.destination import Destination, queue, topic

PREFIX = "kombu."
RECORD, EXCHANGE, QUEUE = "binding", "exchange", "queue"
LOOK_AGAIN_SECONDS = 1.0
"""An exchange that leads nowhere may have been bound meanwhile: so often it is looked at."""


class Binding(NamedTuple):
    """One way out of an exchange; with an empty queue, to the exchange's topic."""

    type: str
    routing_key: str
    queue: str


class Routes(NamedTuple):
    """Destinations of one message."""

    queues: list[str]
    has_subscribers: bool


def exchange_topic(exchange: str) -> Destination:
    """Return the topic with everything that is published to an exchange, once somebody listens."""
    return topic(f"{PREFIX}exchange.{exchange}")


def _records(exchange: str) -> Destination:
    return queue(f"{PREFIX}bindings.{exchange}")


EXCHANGES = queue(f"{PREFIX}exchanges")
"""One message for each exchange that has bindings."""
CHANGES = topic(f"{PREFIX}bindings")


class Bindings:
    """The bindings that one connection knows of; for any thread."""

    def __init__(self, session: Session) -> None:
        """The *session* is its alone, and acknowledges what it receives."""
        self._session = session
        self._producer = session.producer()
        self._lock = threading.RLock()
        self._tables: dict[str, set[Binding]] = {}
        self._looked: dict[str, float] = {}
        self._changes: Consumer | None = None
        self._is_stale = False

    def forget_all(self) -> None:
        """Look at everything anew: changes may have gone unheard. Never waits."""
        self._is_stale = True

    def routes(self, exchange: str, routing_key: str) -> Routes:
        """Return where a message goes."""
        with self._lock:
            found = self._routes(exchange, routing_key)
            long_ago = time.monotonic() - self._looked[exchange] > LOOK_AGAIN_SECONDS
            if long_ago and not found.queues and not found.has_subscribers:
                self._tables.pop(exchange, None)
                found = self._routes(exchange, routing_key)
            return found

    def _routes(self, exchange: str, routing_key: str) -> Routes:
        table = self._table(exchange)
        names = {
            each.queue
            for each in table
            if each.queue and fits(each.type, each.routing_key, routing_key)
        }
        return Routes(sorted(names), any(not each.queue for each in table))

    def list_all(self) -> Iterator[tuple[str, Binding]]:
        """Yield every binding with its exchange."""
        for exchange in self._exchanges():
            with self._lock:
                table = sorted(self._table(exchange))
            for each in table:
                if each.queue:
                    yield exchange, each

    def type_of(self, exchange: str) -> str | None:
        """Return the type that an exchange has been bound with, None for an unknown one."""
        with self._lock:
            return next((each.type for each in self._table(exchange)), None)

    def add(self, exchange: str, binding: Binding) -> None:
        """Keep a binding, on disk when this returns."""
        with self._lock:
            if binding in self._table(exchange):
                return
            self._tables.pop(exchange)
            table = self._table(exchange)
            if not table and exchange not in self._exchanges():
                self._producer.send(exchange, {EXCHANGE: exchange}, destination=EXCHANGES)
            if binding not in table:
                self._producer.send(
                    json.dumps(binding),
                    {RECORD: _named(binding), QUEUE: binding.queue},
                    destination=_records(exchange),
                )
                table.add(binding)
                self._tell(exchange)

    def remove(self, exchange: str, binding: Binding) -> None:
        """Forget a binding."""
        with self._lock:
            self._take_out(exchange, f"{RECORD} = {_quoted(_named(binding))}")

    def remove_queue(self, name: str) -> None:
        """Forget all that leads to a queue."""
        with self._lock:
            for exchange in self._exchanges():
                if any(each.queue == name for each in self._table(exchange)):
                    self._take_out(exchange, f"{QUEUE} = {_quoted(name)}")

    def remove_exchange(self, exchange: str) -> None:
        """Forget all that leads out of an exchange."""
        with self._lock:
            self._take_out(exchange, None)
            self._consume(EXCHANGES, f"{EXCHANGE} = {_quoted(exchange)}")

    # On the broker

    def _table(self, exchange: str) -> set[Binding]:
        if self._changes is None:
            self._changes = self._session.consumer(CHANGES)
        if self._is_stale:
            self._is_stale = False
            self._tables.clear()
        while (change := self._changes.receive(0)) is not None:
            self._tables.pop(str(change.body), None)
        table = self._tables.get(exchange)
        if table is None:
            self._looked[exchange] = time.monotonic()
            bodies = (str(each.body) for each in self._session.browse(_records(exchange)))
            table = self._tables[exchange] = {Binding(*json.loads(body)) for body in bodies}
        return table

    def _exchanges(self) -> list[str]:
        return sorted({str(each.body) for each in self._session.browse(EXCHANGES)})

    def _take_out(self, exchange: str, selector: str | None) -> None:
        if self._consume(_records(exchange), selector):
            self._tables.pop(exchange, None)
            self._tell(exchange)

    def _consume(self, destination: Destination, selector: str | None) -> int:
        """Take the records that a selector fits, and return how many there were."""
        count = 0
        with self._session.consumer(destination, selector, prefetch=0) as consumer:
            while consumer.receive(0) is not None:
                count += 1
        return count

    def _tell(self, exchange: str) -> None:
        self._producer.send(exchange, destination=CHANGES)


def _named(binding: Binding) -> str:
    return json.dumps(binding)


def _quoted(text: str) -> str:
    quoted = text.replace("'", "''")
    return f"'{quoted}'"
