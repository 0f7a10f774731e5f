"""Figures of streams and consumer groups: plain values, one JSON form for all."""

from collections.abc import Iterator
from typing import Any, Final

from lockkeeper.broker.core import Broker
from lockkeeper.broker.streams.groups import Group
from lockkeeper.broker.streams.partition import Partition
from lockkeeper.broker.streams.queries import Lag
from lockkeeper.broker.streams.stream import Stream
from lockkeeper.journal.counters import COUNTERS

GROUPS_MAX: Final = 16
"""So many of a stream's groups are told of with it: those that are furthest behind."""


def stream_views(broker: Broker) -> Iterator[dict[str, Any]]:
    """Yield the figures of every stream."""
    for stream in list(broker.streams):
        yield stream_view(broker, stream)


def stream_view(broker: Broker, stream: Stream) -> dict[str, Any]:
    """Return the figures of one stream; ages are in ms."""
    settings, retention = stream.settings, stream.settings.retention
    partitions = [_partition_view(each) for each in stream.partitions]
    return {
        "name": stream.name,
        "kind": "Stream",
        "ordered": settings.ordered,
        "retention": {
            "time": retention.time,
            "bytes": retention.bytes or None,
            "messages": retention.messages or None,
        },
        "messages": sum(each["messages"] for each in partitions),
        "bytes": sum(each["bytes"] for each in partitions),
        "oldestMessageAge": _oldest_age(broker, stream),
        "partitions": partitions,
    }


def _partition_view(partition: Partition) -> dict[str, Any]:
    return {
        "partition": partition.number,
        "minimum": partition.minimum,
        "maximum": partition.maximum,
        "messages": partition.maximum - partition.minimum,
        "bytes": partition.bytes,
    }


def _oldest_age(broker: Broker, stream: Stream) -> int | None:
    """Return for how many ms the oldest message has been there; None without one."""
    times = [
        segment.first_at
        for partition in stream.partitions
        for segment in partition.segments[:1]
        if segment.first_at
    ]
    return max(0, broker.now - min(times)) if times else None


def destination_like_view(broker: Broker, stream: Stream) -> dict[str, Any]:
    """Return a stream as the list of destinations has them: with the figures that all have."""
    view = stream_view(broker, stream)
    members = sum(
        stream.name in member.subscriptions
        for group in broker.streams.groups
        for member in group.members.values()
    )
    return {
        **{counter.json_name: 0 for counter in COUNTERS},
        **view,
        "temporary": False,
        "depth": view["messages"],
        "inFlight": 0,
        "consumers": members,
        "durableSubscriptions": 0,
        "memoryBytes": 0,
        "producers": 0,
        "enqueued": sum(partition.maximum for partition in stream.partitions),
        "groups": [
            {"name": group.name, "members": len(group.members), **_lag_figures(lag)}
            for group, lag in broker.streams.queries.furthest_behind(
                broker.streams.groups, stream.name, GROUPS_MAX
            )
        ],
    }


def group_views(broker: Broker) -> Iterator[dict[str, Any]]:
    """Yield what there is to tell of every consumer group."""
    for group in list(broker.streams.groups):
        yield group_view(broker, group)


def group_view(broker: Broker, group: Group) -> dict[str, Any]:
    """Return what there is to tell of a consumer group; times are in ms."""
    lag = broker.streams.queries.lag(group)
    return {
        "name": group.name,
        **_lag_figures(lag),
        "members": [
            {
                "clientId": member.client_id,
                "address": member.connection.address,
                "model": member.model.value,
                "subscriptions": {
                    name: each.expression for name, each in sorted(member.subscriptions.items())
                },
            }
            for _, member in sorted(group.members.items())
        ],
        "partitions": [_lag_view(broker, group, each) for each in lag],
    }


def _lag_figures(lag: list[Lag]) -> dict[str, int]:
    """Return how much a group has to consume, and for how many ms the oldest of it has waited."""
    return {
        "lagMessages": sum(each.messages for each in lag),
        "lagTime": max((each.milliseconds for each in lag if each.messages), default=0),
    }


def _lag_view(broker: Broker, group: Group, lag: Lag) -> dict[str, Any]:
    return {
        "stream": lag.stream,
        "partition": lag.partition,
        "offset": lag.offset,
        "maximum": lag.maximum,
        "lagMessages": lag.messages,
        "lagTime": lag.milliseconds if lag.messages else 0,
        "lockedBy": broker.streams.groups.holder(group.name, (lag.stream, lag.partition)),
    }
