"""Answers to `why`: the explanations of the core in the admin endpoint's JSON form."""

import asyncio
from typing import Any

from lockkeeper.broker.core import Broker
from lockkeeper.broker.diagnostics.elsewhere import why_elsewhere
from lockkeeper.broker.diagnostics.files import Survey, why_file
from lockkeeper.broker.diagnostics.groups import (
    delayed_retries,
    streams_of,
    why_group,
    why_stream,
)
from lockkeeper.broker.diagnostics.partitions import why_partition
from lockkeeper.broker.diagnostics.producers import why_producers
from lockkeeper.broker.diagnostics.queues import why_message, why_queue
from lockkeeper.broker.diagnostics.reason import Reason
from lockkeeper.broker.streams.groups import Group
from lockkeeper.message.destination import parse_destination


class UnknownSubjectError(Exception):
    """There is nothing of the name that was asked about."""


def queue_answer(broker: Broker, name: str, message_id: str = "") -> dict[str, Any]:
    """Return why a queue keeps its messages, or one of them. Raises UnknownSubjectError.

    There may be no queue yet where a message has still to come.
    """
    destination = parse_destination(name)
    region = broker.registry.find_queue(destination)
    if region is not None:
        reasons = why_message(broker, region, message_id) if message_id else why_queue(region)
    else:
        reasons = why_elsewhere(broker, destination, message_id) if message_id else []
        if not reasons:
            raise UnknownSubjectError(f"there is no queue {name}")
    return {
        "queue": str(destination),
        "depth": 0 if region is None else region.depth(),
        "inFlight": 0 if region is None else region.in_flight(),
        "reasons": _views(reasons),
    }


def producers_answer(broker: Broker, name: str = "") -> dict[str, Any]:
    """Return why producers wait: those of a destination or connection, else all."""
    return {"reasons": _views(why_producers(broker, name))}


async def files_answer(broker: Broker, name: str = "") -> dict[str, Any]:
    """Return why journal files are kept: one by its name, else all. Raises UnknownSubjectError."""
    files = [each for each in broker.store.files() if name in ("", each.name)]
    if name and not files:
        raise UnknownSubjectError(f"there is no journal file {name}")
    survey = Survey(broker)
    for _ in survey.steps():
        await asyncio.sleep(0)
    return {
        "files": [
            {
                "file": each.name,
                "bytes": each.bytes_on_disk,
                "reasons": _views(why_file(broker, each, survey)),
            }
            for each in files
        ]
    }


async def group_answer(broker: Broker, name: str, stream: str = "") -> dict[str, Any]:
    """Return why a group has not consumed everything, of one stream or of all it is concerned with.

    Raises UnknownSubjectError.
    """
    group = broker.streams.groups.find(name)
    if group is None:
        raise UnknownSubjectError(f"there is no group {name}; a member or an offset makes one")
    known = streams_of(broker, group)
    if stream and stream not in known:
        told = f"consumes {', '.join(known)}" if known else "consumes nothing"
        raise UnknownSubjectError(f"group {name} has nothing to do with {stream}; it {told}")
    streams = [await _stream_view(broker, group, each) for each in known if stream in ("", each)]
    messages = sum(each["lagMessages"] for each in streams)
    delayed = []
    for level in delayed_retries(broker, group):
        delayed.append(level)
        await asyncio.sleep(0)
    return {
        "group": name,
        "members": len(group.members),
        "lagMessages": messages,
        "reasons": _views(why_group(broker, group, messages, delayed)),
        "streams": streams,
    }


async def _stream_view(broker: Broker, group: Group, name: str) -> dict[str, Any]:
    reasons = why_stream(broker, group, name)
    stream = broker.streams.find(name)
    partitions = []
    for partition in () if stream is None else list(stream.partitions):
        lag = broker.streams.queries.lag_in(group, partition)
        partitions.append(
            {
                "partition": partition.number,
                "offset": lag.offset,
                "maximum": lag.maximum,
                "lagMessages": lag.messages,
                "reasons": _views(why_partition(broker, group, partition)),
            }
        )
        await asyncio.sleep(0)
    return {
        "stream": name,
        "lagMessages": sum(each["lagMessages"] for each in partitions),
        "reasons": _views(reasons),
        "partitions": partitions,
    }


def _views(reasons: list[Reason]) -> list[dict[str, Any]]:
    return [reason.view() for reason in reasons]
