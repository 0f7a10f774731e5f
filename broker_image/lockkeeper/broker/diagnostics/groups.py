"""Diagnostics of a consumer group: the reasons why there is something that it has not consumed."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from lockkeeper.broker.diagnostics.reason import Reason, counted
from lockkeeper.broker.streams.delays import DELAY_STREAM
from lockkeeper.broker.streams.feeding import FEED_PREFIX
from lockkeeper.broker.streams.groups import Model
from lockkeeper.broker.streams.streams import DEAD_LETTER_PREFIX, RETRY_PREFIX

if TYPE_CHECKING:
    from lockkeeper.broker.core import Broker
    from lockkeeper.broker.streams.delays import Delayed
    from lockkeeper.broker.streams.groups import Group, Member


def streams_of(broker: "Broker", group: "Group") -> list[str]:
    """Return the names of what a group has an offset of, or a member subscribes to.

    What was given back is among them once it came again, also where nobody ever read it.
    """
    subscribed = {name for member in group.members.values() for name in member.subscriptions}
    retries = broker.streams.find(RETRY_PREFIX + group.name)
    partitions = () if retries is None else retries.partitions
    if any(broker.streams.queries.lag_in(group, each).messages for each in partitions):
        subscribed.add(RETRY_PREFIX + group.name)
    return sorted({stream for stream, _ in group.offsets} | subscribed)


def readers_of(group: "Group", stream: str) -> list["Member"]:
    """Return the members that subscribe to a stream, by their client ids."""
    return [member for _, member in sorted(group.members.items()) if stream in member.subscriptions]


def why_group(
    broker: "Broker", group: "Group", messages: int, delayed: "Sequence[Delayed]"
) -> list[Reason]:
    """Return what concerns all streams of a group that has so many *messages* to consume.

    *delayed* is what waits for its next try, see `delayed_retries`. Empty when everything is
    consumed.
    """
    reasons: list[Reason] = []
    if messages:
        reasons += _why_nobody(group)
    reasons += _why_broadcast(group)
    reasons += _retries(broker, group, delayed)
    reasons += _dead_letters(broker, group)
    return reasons


def _why_nobody(group: "Group") -> list[Reason]:
    if group.name.startswith(FEED_PREFIX):
        queue = group.name[len(FEED_PREFIX) :]
        return [
            Reason(
                "feed",
                f"the broker itself moves its messages into the queue {queue}",
                f"if it stands still, the queue has no room: see systemUsage, `lockkeeper why "
                f"{queue}`; or no stream names it in toQueues any more",
                {"queue": queue},
            )
        ]
    if group.members:
        return []
    return [
        Reason(
            "no-member",
            "the group has no member",
            "start one; one that runs is at another broker, or has another group",
            {},
        )
    ]


def _why_broadcast(group: "Group") -> list[Reason]:
    found = [
        member.client_id for member in group.members.values() if member.model is Model.BROADCASTING
    ]
    if not found:
        return []
    return [
        Reason(
            "broadcasting",
            f"{counted(len(found), 'member')} of it {'is' if len(found) == 1 else 'are'} "
            "broadcast to: such members keep their offsets themselves, and the broker knows none",
            "look at the offsets in the clients' files, or use CLUSTERING",
            {"clientIds": sorted(found)},
        )
    ]


def delayed_retries(broker: "Broker", group: "Group") -> "Iterator[Delayed]":
    """Yield what of a group waits for its next try, level by level.

    Blocks for each while delayed messages are read.
    """
    streams, name = broker.streams, RETRY_PREFIX + group.name
    delayed = streams.find(DELAY_STREAM)
    if delayed is not None and streams.find(name) is not None:
        yield from streams.delays.waiting_for(name, delayed.partitions)


def _retries(broker: "Broker", group: "Group", levels: "Sequence[Delayed]") -> list[Reason]:
    """Return what of a group waits for its next try."""
    name = RETRY_PREFIX + group.name
    messages = sum(each.messages for each in levels)
    if not messages:
        return []
    is_all = all(each.is_all for each in levels)
    due_in = min(each.due_in for each in levels if each.messages)
    verb = "waits" if messages == 1 else "wait"
    least = "" if is_all else "at least "
    return [
        Reason(
            "retry-pending",
            f"{least}{counted(messages, 'message')} that a member gave back {verb} for the next "
            f"try, the first one for {_seconds(due_in)} more",
            f"they come in {name}; why they were given back is in the logs of the members",
            {"messages": messages, "isAll": is_all, "dueAt": broker.now + due_in},
        )
    ]


def _dead_letters(broker: "Broker", group: "Group") -> list[Reason]:
    """Return what a group has given up, as far as it is kept."""
    name = DEAD_LETTER_PREFIX + group.name
    stream = broker.streams.find(name)
    if stream is None:
        return []
    messages = sum(each.maximum - each.minimum for each in stream.partitions)
    if not messages:
        return []
    verb = "is" if messages == 1 else "are"
    return [
        Reason(
            "dead-letters",
            f"{counted(messages, 'message')} {verb} in {name}: given up after too many tries, "
            "and not to be consumed by the group again",
            f"find what was wrong with them; then consume {name}, or send them again",
            {"messages": messages, "stream": name},
        )
    ]


def why_stream(broker: "Broker", group: "Group", name: str) -> list[Reason]:
    """Return what concerns all partitions of a stream for a group; empty when nothing does."""
    stream, readers = broker.streams.find(name), readers_of(group, name)
    if stream is None:
        return [
            Reason(
                "no-stream",
                f"there is no stream {name}",
                "declare it, or send to it; or mend the subscription",
                {"clientIds": [each.client_id for each in readers]},
            )
        ]
    if not group.members:
        return []
    if not readers:
        return [
            Reason(
                "not-subscribed",
                f"none of {counted(len(group.members), 'member')} subscribes to it",
                "all members of a group subscribe to the same; else delete the group's offsets of "
                "it with the group",
                {},
            )
        ]
    return [*_why_split(group, name, readers)]


def _why_split(group: "Group", name: str, readers: list["Member"]) -> list[Reason]:
    """Return the trouble of members that do not subscribe to the same."""
    expressions = sorted({each.subscriptions[name].expression for each in readers})
    if len(expressions) == 1 and len(readers) == len(group.members):
        return []
    missing = len(group.members) - len(readers)
    told = f"its members subscribe to different things: {', '.join(expressions)}"
    if missing:
        told += f"; {counted(missing, 'member')} not to this stream at all"
    return [
        Reason(
            "subscriptions-differ",
            told + ". Each partition falls to one member, by whose subscription it is read",
            "have all members of the group subscribe to the same",
            {"expressions": expressions, "notSubscribed": missing},
        )
    ]


def _seconds(milliseconds: int) -> str:
    return f"{-(-milliseconds // 1_000):,} s"
