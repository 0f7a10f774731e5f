"""Facts from which the conditions of a Destination follow."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class GroupFigures:
    """A consumer group as the broker counts it; *lag_age* is text such as `5m`."""

    name: str
    members: int
    lag_messages: int
    lag_age: str | None = None


@dataclass(frozen=True, slots=True)
class StreamFigures:
    """A stream as the broker counts it, with the groups that are furthest behind."""

    partitions: int
    size: int
    groups: tuple[GroupFigures, ...] = ()


@dataclass(frozen=True, slots=True)
class Figures:
    """A destination as the broker counts it; *oldest_age* is text such as `1h30m`."""

    depth: int = 0
    consumers: int = 0
    enqueued: int = 0
    dequeued: int = 0
    oldest_age: str | None = None
    stream: StreamFigures | None = None


@dataclass(frozen=True, slots=True)
class DestinationFacts:
    """A Destination: its Broker, and what that broker has.

    *holder* names another Destination resource that has the same destination and is older.
    *figures* are None where the broker does not have it. *foreign* says that it was there before
    the resource and is not adopted; *in_sync* that its policy is as the resource says; *invalid*
    what is wrong with the resource, where the API server let it pass.
    """

    name: str
    broker: str
    broker_there: bool = True
    allowed: bool = True
    broker_answers: bool = True
    holder: str = ""
    foreign: bool = False
    figures: Figures | None = None
    in_sync: bool = False
    invalid: str = ""
