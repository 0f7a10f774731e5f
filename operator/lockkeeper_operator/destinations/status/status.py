"""The status of a Destination."""

from typing import Any

from lockkeeper_api.status import DestinationStatus, GroupStatus, StreamStatus
from lockkeeper_operator.destinations.status import accepted, in_sync, ready
from lockkeeper_operator.destinations.status.facts import DestinationFacts, StreamFigures
from lockkeeper_operator.kubernetes.conditions import dated

CONDITIONS = (
    ready.condition,
    accepted.condition,
    in_sync.condition,
)


def destination_status(
    facts: DestinationFacts, previous: dict[str, Any], generation: int, now: str
) -> dict[str, Any] | None:
    """Return the status to be written, None if *previous* says the same already."""
    verdicts = [condition(facts) for condition in CONDITIONS]
    figures = facts.figures
    status = DestinationStatus(
        observed_generation=generation,
        conditions=dated(verdicts, previous, generation, now),
        name=facts.name,
        depth=None if figures is None else figures.depth,
        consumers=None if figures is None else figures.consumers,
        enqueued=None if figures is None else figures.enqueued,
        dequeued=None if figures is None else figures.dequeued,
        oldest_message_age=None if figures is None else figures.oldest_age,
        stream=None if figures is None or figures.stream is None else _stream(figures.stream),
    )
    written: dict[str, Any] = status.model_dump(mode="json", by_alias=True, exclude_none=True)
    return None if written == previous else written


def _stream(figures: StreamFigures) -> StreamStatus:
    groups = [
        GroupStatus(
            name=each.name,
            members=each.members,
            lag_messages=each.lag_messages,
            lag_time=each.lag_age,
        )
        for each in figures.groups
    ]
    return StreamStatus(
        partitions=figures.partitions,
        bytes=figures.size,
        lag_messages=max((each.lag_messages for each in groups), default=None),
        groups=groups,
    )
