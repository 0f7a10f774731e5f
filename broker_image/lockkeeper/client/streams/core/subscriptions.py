"""Subscriptions: tags or a condition on the messages of a stream, and how brokers are told."""

from dataclasses import dataclass
from typing import Any

from lockkeeper.client.streams.core.sharing import java_hash

ALL = "*"
TAG, SQL = "TAG", "SQL92"


@dataclass(frozen=True, slots=True)
class Sql:
    """A condition on properties, in SQL-92: `Sql("region = 'EU' AND weight > 5")`."""

    condition: str


@dataclass(frozen=True, slots=True)
class Subscription:
    """A stream, and which of its messages are wanted."""

    stream: str
    expression: str
    kind: str
    tags: frozenset[str]

    def wants(self, tag: str) -> bool:
        """Tell whether a tag is wanted: brokers compare tags by hash alone."""
        return not self.tags or tag in self.tags

    def told(self) -> dict[str, Any]:
        """Return what a heartbeat tells of it."""
        tags = sorted(self.tags)
        return {
            "classFilterMode": False,
            "codeSet": [java_hash(tag) for tag in tags],
            "expressionType": self.kind,
            "subString": self.expression,
            "subVersion": 0,
            "tagsSet": tags,
            "topic": self.stream,
        }


def subscription(stream: str, wanted: str | Sql) -> Subscription:
    """Return the subscription to a stream, by tags such as `paid || sent`, or a condition.

    Raises ValueError for tags without a tag.
    """
    if isinstance(wanted, Sql):
        return Subscription(stream, wanted.condition, SQL, frozenset())
    if wanted == ALL:
        return Subscription(stream, ALL, TAG, frozenset())
    tags = frozenset(tag.strip() for tag in wanted.split("||")) - {""}
    if not tags:
        raise ValueError(
            f"{wanted!r} names no tag of {stream}: write tags as 'a || b', '*' for all"
        )
    return Subscription(stream, wanted, TAG, tags)
