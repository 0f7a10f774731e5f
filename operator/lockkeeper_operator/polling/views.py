"""Answers of brokers, made into what plans and statuses are made from."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from lockkeeper_api import DestinationPolicy
from lockkeeper_api.streams import Stream
from lockkeeper_operator.kubernetes.hashes import hash_of
from lockkeeper_operator.polling.report import BridgeReport, Report

_AGES = (1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 14400, 28800, 43200, 86400)
"""Seconds that an age is rounded down to, so that a status is not written all the time."""
DAY = 86400
POLICIES_KNOWN = 1024


@dataclass(frozen=True, slots=True)
class GroupView:
    """A consumer group of a stream; its lag, in messages and in seconds, is rounded down."""

    name: str
    members: int
    lag_messages: int
    lag_age: int | None


@dataclass(frozen=True, slots=True)
class StreamView:
    """What only streams have: their partitions, bytes, and the groups furthest behind, by name."""

    partitions: int
    size: int
    groups: tuple[GroupView, ...]


@dataclass(frozen=True, slots=True)
class DestinationView:
    """A destination as its broker has it; *policy* is a hash, "" where none is declared.

    *age* is that of the oldest message in seconds, rounded down in steps.
    """

    owner: str
    policy: str
    depth: int
    consumers: int
    enqueued: int
    dequeued: int
    age: int | None
    stream: StreamView | None = None

    @property
    def empty(self) -> bool:
        """Whether nothing is lost, and nobody disturbed, when it goes."""
        return self.depth == 0 and self.consumers == 0


def report_of(said: dict[str, Any]) -> Report:
    """Return what a broker says of itself; what is not said is not known."""
    return Report(
        role=str(said.get("role", "")),
        takes_over=said.get("takesOver") is True,
        epoch=_whole(said.get("epoch")),
        configuration=_text(said.get("configuration")),
        refused=_text(said.get("refused")),
        refusal=str(said.get("refusal") or ""),
        version=_text(said.get("version")),
        bridges=tuple(_bridges(said.get("bridges"))),
    )


def _bridges(said: Any) -> Iterator[BridgeReport]:
    """Yield the bridges that the broker itself dials."""
    for each in said if isinstance(said, list) else ():
        if isinstance(each, dict) and each.get("initiator") is True:
            yield BridgeReport(
                name=str(each.get("name", "")),
                connected=each.get("state") == "connected",
                failure=str(each.get("failure") or ""),
                waiting=rounded_count(_whole(each.get("waiting")) or 0),
                stranded=rounded_count(_whole(each.get("stranded")) or 0),
            )


def rounded_count(count: int) -> int:
    """Return a number, rounded down to a power of ten, so that it seldom changes."""
    return 10 ** (len(str(count)) - 1) if count > 0 else 0


def view_of(said: dict[str, Any]) -> DestinationView:
    """Return a destination's view."""
    age = said.get("oldestMessageAge")
    return DestinationView(
        owner=str(said.get("owner") or ""),
        policy=policy_hash(said.get("policy")),
        depth=_whole(said.get("depth")) or 0,
        consumers=_whole(said.get("consumers")) or 0,
        enqueued=_whole(said.get("enqueued")) or 0,
        dequeued=_whole(said.get("dequeued")) or 0,
        age=None if not isinstance(age, int | float) else rounded_age(age / 1000),
        stream=_stream_view(said) if said.get("kind") == "Stream" else None,
    )


def _stream_view(said: dict[str, Any]) -> StreamView:
    partitions, groups = said.get("partitions"), said.get("groups")
    return StreamView(
        partitions=len(partitions) if isinstance(partitions, list) else 0,
        size=_whole(said.get("bytes")) or 0,
        groups=tuple(sorted(_groups(groups), key=lambda each: each.name)),
    )


def _groups(said: Any) -> Iterator[GroupView]:
    for each in said if isinstance(said, list) else ():
        if isinstance(each, dict):
            messages = _whole(each.get("lagMessages")) or 0
            seconds = (_whole(each.get("lagTime")) or 0) / 1000
            yield GroupView(
                name=str(each.get("name", "")),
                members=_whole(each.get("members")) or 0,
                lag_messages=rounded_count(messages),
                lag_age=rounded_age(seconds) if messages else None,
            )


def policy_hash(policy: dict[str, Any] | None) -> str:
    """Return a hash of a policy as it is declared, whichever defaults are written down."""
    return "" if policy is None else _hash_of_policy(json.dumps(policy))


@lru_cache(POLICIES_KNOWN)
def _hash_of_policy(text: str) -> str:
    """Return the hash of a policy; the same few are met in thousands of answers a minute."""
    policy = json.loads(text)
    try:
        return hash_of(policy_said(DestinationPolicy.model_validate(policy)))
    except ValueError:
        return hash_of(policy)


def policy_said(policy: DestinationPolicy | Stream) -> dict[str, Any]:
    """Return what a policy says besides defaults."""
    said: dict[str, Any] = policy.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    return said


def rounded_age(seconds: float) -> int:
    """Return an age in seconds, rounded down."""
    if seconds >= DAY:
        return int(seconds // DAY) * DAY
    return max((step for step in _AGES if step <= seconds), default=0)


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
