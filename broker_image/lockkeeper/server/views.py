"""Figures of a broker: plain values for the admin endpoint, one JSON form for all."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from heapq import merge
from typing import Any

from lockkeeper.broker.advisories.names import is_advisory
from lockkeeper.broker.core import Broker
from lockkeeper.broker.flow.space import Limit, holders
from lockkeeper.broker.regions.queue import Queue
from lockkeeper.broker.regions.topic import Topic
from lockkeeper.message.destination import Destination
from lockkeeper.server.strangers import Strangers
from lockkeeper.store.base import Store

_PIECE = 1000


def destination_view(region: Queue | Topic) -> dict[str, Any]:
    """Return the figures of one destination; ActiveMQ's names where it has one."""
    in_flight = region.in_flight()
    return {
        "name": region.destination.name,
        "kind": "Queue" if region.destination.is_queue else "Topic",
        "temporary": region.destination.is_temporary,
        "depth": region.depth() + in_flight,
        "inFlight": in_flight,
        "consumers": len(region.takers()),
        "durableSubscriptions": sum(one.subscription is not None for one in region.backlogs()),
        "memoryBytes": region.body_cache.used,
        **region.statistics.counters(),
    }


def destinations_view(broker: Broker) -> list[dict[str, Any]]:
    """Return the figures of every destination but the advisory topics, by name."""
    return list(merge(*in_order(list(destination_views(broker))), key=place))


def destination_views(broker: Broker) -> Iterator[dict[str, Any]]:
    """Yield the figures of every destination but the advisory topics."""
    for region in broker.registry:
        if not is_advisory(region.destination):
            yield destination_view(region)


def in_order(views: list[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """Yield pieces of a long list, each by `place`, to be merged."""
    for start in range(0, len(views), _PIECE):
        yield sorted(views[start : start + _PIECE], key=place)


def place(view: dict[str, Any]) -> tuple[str, str]:
    """Return by what destinations are in order: kind and name."""
    return (view["kind"], view["name"])


def transactions_view(broker: Broker) -> list[dict[str, Any]]:
    """Return the transactions that wait for their outcome, and those decided by hand."""
    transactions = broker.transactions
    prepared = [
        {
            "transaction": str(identifier),
            "state": "prepared",
            "sent": _counted((run.route.destination, run.references) for run in transaction.sent),
            "consumed": _counted(
                (run.backlog.destination, run.references) for run in transaction.consumed
            ),
        }
        for identifier, transaction in transactions.prepared.items()
    ]
    decided = [
        {"transaction": str(identifier), "state": "committed" if committed else "rolled back"}
        for identifier, committed in transactions.heuristics.committed.items()
    ]
    return prepared + decided


def _counted(runs: Iterable[tuple[Destination, Sequence[object]]]) -> dict[str, int]:
    """Return how many messages there are of each destination."""
    counts: Counter[str] = Counter()
    for destination, references in runs:
        counts[str(destination)] += len(references)
    return dict(counts)


def blocked_view(broker: Broker) -> list[dict[str, Any]]:
    """Return the sends that wait for room: where, for which limit, since when, and who holds it.

    Times are in ms since the epoch. The journal's files are not told of here.
    """
    largest = [
        {"destination": str(holder.destination), "memoryBytes": holder.memory_bytes}
        for holder in holders(broker.registry)
    ]
    return [
        {
            "destination": str(blocked.destination),
            "persistent": blocked.is_persistent,
            "limit": blocked.limit.value,
            "since": blocked.since,
            "sends": blocked.sends,
            "bytes": blocked.bytes,
            "connections": [
                {"clientId": each.client_id, "address": each.address, "isRead": not each.stalled}
                for each in blocked.connections
            ],
            "heldBy": [] if blocked.limit is Limit.STORE_USAGE else largest,
        }
        for blocked in broker.flow.blocked()
    ]


def door_view(strangers: Strangers) -> dict[str, Any]:
    """Return who has not logged in yet, and how many were turned away since the start, and why."""
    return {
        "connectionsBeforeLogin": len(strangers),
        "connectionsTurnedAway": dict(strangers.turned_away),
    }


def master_view(broker: Broker, store: Store) -> dict[str, Any]:
    """Return what only a master can tell."""
    usage, memory = store.usage(), broker.memory
    return {
        "connections": len(broker.connections),
        "memory": {"used": memory.used, "limit": memory.limit},
        "store": {
            "files": usage.files,
            "bytes": usage.bytes_on_disk,
            "waitingOperations": usage.waiting_operations,
            "spooledBytes": usage.spooled_bytes,
        },
        "blockedSends": blocked_view(broker),
        "containedErrors": contained_view(broker),
        "preparedTransactions": [str(key) for key in broker.transactions.prepared],
    }


def contained_view(broker: Broker) -> dict[str, Any]:
    """Return the errors that were contained: how many of each kind, and the latest places."""
    containment = broker.containment
    latest = [
        {
            "kind": record.kind,
            "what": record.what,
            "error": record.error,
            "count": record.count,
            "first": record.first,
            "last": record.last,
        }
        for record in reversed(containment.records.values())
    ]
    return {"counts": dict(containment.counts), "latest": latest}
