"""Reading everything a broker has, after a crash, and settling it with the ledger."""

import random

import wire
from ledger import ASKED, DONE, DROPPED, OPEN, Entry, Ledger, Unit, XAUnit
from load import QUEUES, SUBSCRIBERS, SUBSCRIPTION, TOPIC, content_of, place_of

from lockkeeper.message.destination import queue, topic
from lockkeeper.message.openwire import DELIVERED_NOTHING, RemoveInfo, TransactionOperation

_FINISHED = {
    True: (TransactionOperation.COMMIT_TWO_PHASE, DONE),
    False: (TransactionOperation.ROLLBACK, DROPPED),
}


def subscribe(port: int) -> None:
    """Create the durable subscriptions."""
    for subscriber in SUBSCRIBERS:
        with wire.Wire(port, subscriber) as connection:
            connection.consumer(topic(TOPIC), subscription_name=SUBSCRIPTION)
            connection.leave()


def audit(ledger: Ledger, port: int, chance: random.Random) -> None:
    """Finish prepared transactions, then compare all queues and subscriptions with *ledger*."""
    with wire.Wire(port) as connection:
        _finish_prepared(ledger, connection, chance)
    found = {}
    for name in QUEUES:
        with wire.Wire(port) as connection:
            messages = connection.browse(queue(name))
            found[name] = [str(message.message_id) for message in messages]
    with wire.Wire(port) as connection:
        last = _send_marker(ledger, connection)
    for subscriber in SUBSCRIBERS:
        found[place_of(subscriber)] = _pending(port, subscriber, last)
    ledger.settle(found)


def _finish_prepared(ledger: Ledger, connection: wire.Wire, chance: random.Random) -> None:
    """End the transactions that the broker says are prepared; it must know those it must."""
    units = {unit.identifier: unit for unit in ledger.xa_units()}
    in_doubt = connection.in_doubt()
    for identifier in in_doubt:
        if identifier not in units:
            ledger.problem(f"{identifier} is prepared, and was never asked for")
    for expected in units.values():
        _check_prepared(ledger, expected, expected.identifier in in_doubt)
    for identifier in in_doubt:
        commits = chance.random() < 0.5
        operation, outcome = _FINISHED[commits]
        unit = units.get(identifier)
        if unit is not None:
            # If no answer comes, the next attempt finds what became of it.
            unit.commits, unit.outcome = commits, ASKED
        connection.request(connection.transaction(identifier, operation))
        ledger.counts["prepared, finished after the crash"] += 1
        if unit is not None:
            unit.outcome = outcome


def _check_prepared(ledger: Ledger, unit: XAUnit, is_prepared: bool) -> None:
    """Check that a transaction is prepared when it must be; know its outcome when it is not."""
    if is_prepared:
        if unit.prepare is OPEN or unit.outcome is DONE:
            ledger.problem(f"{unit.identifier} is prepared, but was {unit.outcome.value}")
    elif unit.outcome is OPEN:
        if unit.prepare is DONE:
            ledger.problem(f"{unit.identifier} was prepared and is forgotten")
        unit.outcome = DROPPED
    elif unit.outcome is ASKED:
        unit.outcome = DONE if unit.commits else DROPPED


def _send_marker(ledger: Ledger, connection: wire.Wire) -> str:
    """Send one more message to the topic; everything before it has come when it comes."""
    producer_id = connection.producer()
    name = f"{producer_id}:1"
    unit = ledger.begin(Unit(adds=[Entry(place_of(each), name) for each in SUBSCRIBERS]))
    content = content_of(name, 10)
    connection.request(wire.bytes_message(producer_id, 1, topic(TOPIC), content))
    ledger.done(unit)
    return name


def _pending(port: int, subscriber: str, last: str) -> list[str]:
    """Return what a durable subscription holds up to the message *last*; it keeps all of it."""
    found: list[str] = []
    with wire.Wire(port, subscriber) as connection:
        consumer = connection.consumer(topic(TOPIC), subscription_name=SUBSCRIPTION)
        while last not in found[-1:]:
            dispatch = connection.next_dispatch()
            assert dispatch is not None, f"{subscriber} did not get {last}"
            assert dispatch.message is not None
            found.append(str(dispatch.message.message_id))
        leave = RemoveInfo(object_id=consumer, last_delivered_sequence=DELIVERED_NOTHING)
        connection.request(leave)
        connection.leave()
    return found
