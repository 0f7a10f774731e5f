"""Answers to `why`: the explanations of the core in the admin endpoint's JSON form."""

import asyncio
from typing import Any

from lockkeeper.broker.core import Broker
from lockkeeper.broker.diagnostics.files import Survey, why_file
from lockkeeper.broker.diagnostics.producers import why_producers
from lockkeeper.broker.diagnostics.queues import why_message, why_queue
from lockkeeper.broker.diagnostics.reason import Reason
from lockkeeper.message.destination import parse_destination


class UnknownSubjectError(Exception):
    """There is nothing of the name that was asked about."""


def queue_answer(broker: Broker, name: str, message_id: str = "") -> dict[str, Any]:
    """Return why a queue keeps its messages, or one of them. Raises UnknownSubjectError."""
    region = broker.registry.find_queue(parse_destination(name))
    if region is None:
        raise UnknownSubjectError(f"there is no queue {name}")
    reasons = why_message(broker, region, message_id) if message_id else why_queue(region)
    return {
        "queue": str(region.destination),
        "depth": region.depth(),
        "inFlight": region.in_flight(),
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


def _views(reasons: list[Reason]) -> list[dict[str, Any]]:
    return [reason.view() for reason in reasons]
