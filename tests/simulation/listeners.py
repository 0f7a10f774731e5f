"""Durable subscriptions to a wildcard and to a list of topics: who sends to them, who reads them.

What a subscription holds is noted by topic: the order of several topics among each other is
nobody's promise. Topics begin when somebody first sends to them, also while nobody listens.
"""

import random
from types import ModuleType
from typing import Any

from simulation.pair import SERVICE_PORT

from lockkeeper.message.destination import Destination, topic
from lockkeeper.message.openwire import DELIVERED_NOTHING, RemoveInfo

TALKS = tuple(f"TALK.{each}" for each in "ABCD")
LISTENERS = {"any-talk": "TALK.>", "two-talks": "TALK.A,TALK.B"}
SUBSCRIPTION = "talks"
FIRST = TALKS[0]
"""It is there before anybody subscribes: a wildcard alone is not stored."""


def place_of(name: str, listener: str) -> str:
    """Return the place of the books that a listener's part of a topic is."""
    return f"{name}/{listener}"


def places_of(name: str) -> list[str]:
    """Return where a message to a topic goes."""
    return [
        place_of(name, listener)
        for listener, wanted in LISTENERS.items()
        if name in wanted.split(",") or wanted.endswith(">")
    ]


PLACES = tuple(place for name in TALKS for place in places_of(name))


def wanted_by(listener: str) -> Destination:
    """Return what a listener subscribes to."""
    return topic(LISTENERS[listener])


def subscribe(life: Any) -> None:
    """Create the subscriptions."""
    wire, books = life.wire, life.books
    with wire.Wire(SERVICE_PORT) as connection:
        connection.request(wire.bytes_message(connection.producer(), 1, topic(FIRST), b""))
    for listener in LISTENERS:
        with wire.Wire(SERVICE_PORT, listener) as connection:
            connection.consumer(wanted_by(listener), subscription_name=SUBSCRIPTION)
            connection.leave()
    for place in PLACES:
        books._live.setdefault(place, [])


def make_talker(load: ModuleType) -> type:
    """Return an actor that sends to one of the topics."""

    class Talker(load.Producer):  # type: ignore[name-defined, misc]
        def prepare(self) -> None:
            super().prepare()
            name = self.random.choice(TALKS)
            self.places, self.destination = places_of(name), topic(name)

    return Talker


def make_listener(load: ModuleType) -> type:
    """Return an actor that consumes a subscription, by acknowledgements of ranges."""

    class Listener(load.DurableConsumer):  # type: ignore[name-defined, misc]
        def prepare(self) -> None:
            prefetch = self.random.choice((1, 10, 100))
            wanted = wanted_by(self.client_id)
            self.wire.consumer(wanted, prefetch=prefetch, subscription_name=SUBSCRIPTION)

        def check(self, place: str, dispatch: Any) -> Any:
            name = dispatch.message.destination.name
            return super().check(place_of(name, self.client_id), dispatch)

    return Listener


def read(life: Any) -> dict[str, list[str]]:
    """Return what the subscriptions hold, by place; they keep it, and some more."""
    found: dict[str, list[str]] = {place: [] for place in PLACES}
    markers = _send_markers(life)
    for listener in LISTENERS:
        with life.wire.Wire(SERVICE_PORT, listener) as connection:
            consumer = connection.consumer(wanted_by(listener), subscription_name=SUBSCRIPTION)
            missing = {
                f"{place_of(name, listener)} {marker}"
                for name, marker in markers.items()
                if place_of(name, listener) in PLACES
            }
            while missing:
                dispatch = connection.next_dispatch()
                assert dispatch is not None, f"{listener} did not get {missing}"
                place = place_of(dispatch.message.destination.name, listener)
                found[place].append(str(dispatch.message.message_id))
                missing.discard(f"{place} {found[place][-1]}")
            leave = RemoveInfo(object_id=consumer, last_delivered_sequence=DELIVERED_NOTHING)
            connection.request(leave)
            connection.leave()
    return found


def _send_markers(life: Any) -> dict[str, str]:
    """Send one more message to each topic; everything before it has come when it comes."""
    markers = {}
    Unit, Entry = life.ledger.Unit, life.ledger.Entry
    with life.wire.Wire(SERVICE_PORT) as connection:
        for name in TALKS:
            producer = connection.producer()
            marker = markers[name] = f"{producer}:1"
            unit = life.books.begin(Unit(adds=[Entry(each, marker) for each in places_of(name)]))
            content = life.load.content_of(marker, 10)
            connection.request(life.wire.bytes_message(producer, 1, topic(name), content))
            life.books.done(unit)
    return markers


def drain(life: Any, listener: str, take: Any) -> None:
    """Consume what a listener's subscription holds, and compare it."""
    expected = sorted(
        name
        for place in PLACES
        if place.endswith(f"/{listener}")
        for name in life.books._live.get(place, ())
    )
    with life.wire.Wire(SERVICE_PORT, listener) as connection:
        connection.consumer(wanted_by(listener), subscription_name=SUBSCRIPTION)
        found = take(connection, listener, len(expected))
    if sorted(found) != expected:
        life.books.problem(f"{listener}: drained {len(found)} of {len(expected)}")


def attending(chance: random.Random) -> list[str]:
    """Return who of the listeners is there in a round."""
    return [listener for listener in LISTENERS if chance.random() < 0.7]
