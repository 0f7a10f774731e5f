"""Diagnostics of a partition for a group: why it has messages that the group has not consumed."""

from typing import TYPE_CHECKING, Final

from lockkeeper.broker.diagnostics.groups import readers_of
from lockkeeper.broker.diagnostics.reason import Reason, counted
from lockkeeper.broker.streams.errors import InvalidFilterError
from lockkeeper.broker.streams.filters import EVERYTHING, Filter, sql_filter, tags_filter
from lockkeeper.broker.streams.groups import allocate

if TYPE_CHECKING:
    from lockkeeper.broker.core import Broker
    from lockkeeper.broker.streams.groups import Group, Member, Subscribed
    from lockkeeper.broker.streams.partition import Partition
    from lockkeeper.broker.streams.progress import Progress

SILENT_MS: Final = 60_000
"""Clients send a heartbeat every 30 s; one that has missed two of them is silent."""
READS_AGAIN_MS: Final = 20_000
"""A member with room reads again at once, or after a read that waited for 15 s."""


def why_partition(broker: "Broker", group: "Group", partition: "Partition") -> list[Reason]:
    """Return why a group has not consumed all of a partition; empty when it has.

    Blocks while messages are read that a filter looks into.
    """
    lag = broker.streams.queries.lag_in(group, partition)
    lost = _why_lost(group, partition)
    readers = readers_of(group, partition.stream)
    if not lag.messages or not readers:
        return lost
    held = _why_held(broker, group, partition)
    if held is not None:
        return [*lost, held]
    return [*lost, _why_unread(broker, group, partition, readers, lag.offset)]


def _why_lost(group: "Group", partition: "Partition") -> list[Reason]:
    """Return what retention has ended before the group consumed it."""
    known = group.offsets.get((partition.stream, partition.number))
    if known is None or known >= partition.minimum:
        return []
    return [
        Reason(
            "retention",
            f"{counted(partition.minimum - known, 'message')} ended by retention before the group "
            f"consumed them; it goes on at offset {partition.minimum:,}",
            "they are gone; keep messages for longer (retention), or consume faster",
            {"lost": partition.minimum - known, "minimum": partition.minimum},
        )
    ]


def _why_held(broker: "Broker", group: "Group", partition: "Partition") -> Reason | None:
    """Return why the holder of a partition's lock does nothing with it, None when it may."""
    lock = group.locks.get((partition.stream, partition.number))
    steady = broker.context.steady
    if lock is None or lock.until <= steady:
        return None
    left = lock.until - steady
    facts = {"clientId": lock.owner, "until": broker.now + left}
    ends = f"the lock ends in {-(-left // 1_000):,} s (streams.lockTimeout)"
    holder = group.members.get(lock.owner)
    if holder is None:
        return Reason(
            "locked-by-gone",
            f"{lock.owner} holds its lock, and is no member any more",
            f"it comes back, or {ends}, and another member gets it",
            facts,
        )
    silent = steady - holder.seen_at
    if silent < SILENT_MS:
        return None
    return Reason(
        "locked-by-silent",
        f"{lock.owner} at {holder.connection.address} holds its lock, and was not heard of for "
        f"{silent // 1_000:,} s",
        f"look at that client: it hangs, or its network does; {ends} unless it is renewed, and "
        "the member is out after streams.memberTimeout",
        {**facts, "address": holder.connection.address, "since": broker.now - silent},
    )


def _why_unread(
    broker: "Broker",
    group: "Group",
    partition: "Partition",
    readers: list["Member"],
    offset: int,
) -> Reason:
    """Return why nobody consumes the next message of a partition."""
    progress = group.progress.get((partition.stream, partition.number))
    by_client = {each.client_id: each for each in readers}
    if progress is None or progress.read_at is None or progress.reader not in by_client:
        return _why_never_read(broker, partition, readers)
    reader = by_client[progress.reader]
    facts = {"clientId": reader.client_id, "address": reader.connection.address}
    name = f"{reader.client_id} at {reader.connection.address}"
    ago = broker.context.steady - progress.read_at
    if progress.asked_for > partition.maximum:
        return Reason(
            "beyond-end",
            f"{name} reads from offset {progress.asked_for:,}, beyond the end at "
            f"{partition.maximum:,}: the stream was deleted and made again while it ran",
            "it is told so and goes on at the end; `lockkeeper groups reset` sets the group back",
            {**facts, "askedFor": progress.asked_for},
        )
    if progress.asked_for > offset:
        is_begun = (partition.stream, partition.number) in group.offsets
        if not is_begun and progress.began > offset:
            return Reason(
                "begins-later",
                f"{name} began at offset {progress.began:,}, where its settings say, and "
                "messages before are kept",
                "the group does not consume those; `lockkeeper groups reset` sets it back",
                {**facts, "askedFor": progress.asked_for},
            )
        return _why_in_hand(broker, progress, name, facts, offset)
    is_away = ago >= READS_AGAIN_MS
    subscribed = reader.subscriptions.get(partition.stream)
    unwanted = None if subscribed is None else _why_filtered(partition, subscribed, offset)
    # Who is to pass messages over has to read: more may be behind those that were looked at.
    is_part = unwanted is not None and unwanted.facts.get("isAll") is False
    if unwanted is not None and not (is_away and is_part):
        return unwanted
    if is_away:
        return Reason(
            "not-reading",
            f"{name} has not read on for {ago // 1_000:,} s",
            "look at that client: it is suspended, holds as many messages as it may, or hangs",
            {**facts, "since": broker.now - ago},
        )
    return Reason(
        "next",
        f"{name} is reading it",
        "none is needed; more members, or partitions, consume more at a time",
        facts,
    )


def _why_never_read(broker: "Broker", partition: "Partition", readers: list["Member"]) -> Reason:
    clients = [each.client_id for each in readers]
    shares = allocate(clients, len(broker.streams.get(partition.stream).partitions))
    falls_to = next(each for each in clients if partition.number in shares[each])
    return Reason(
        "not-read",
        f"none of {counted(len(readers), 'member')} reads it; it falls to {falls_to}, unless they "
        "share in a way of their own",
        "members share partitions anew every 20 s; if this stays, that client is suspended, "
        "hangs, or knows of other members or partitions than there are",
        {"clientIds": clients, "fallsTo": falls_to},
    )


def _why_in_hand(
    broker: "Broker", progress: "Progress", name: str, facts: dict[str, str], offset: int
) -> Reason:
    held = progress.asked_for - offset
    told: dict[str, object] = {**facts, "held": held}
    if progress.moved_at is not None:
        told["since"] = broker.now - (broker.context.steady - progress.moved_at)
    return Reason(
        "in-hand",
        f"{name} has {counted(held, 'message')} in hand that it has not told to be consumed",
        "its listener is at work on them, suspends the partition, or hangs: look there; clients "
        "tell offsets every 5 s",
        told,
    )


def _why_filtered(partition: "Partition", subscribed: "Subscribed", offset: int) -> Reason | None:
    """Return what a subscription that lets none of the next messages pass is; None if it does."""
    try:
        wanted: Filter = (sql_filter if subscribed.is_sql else tags_filter)(subscribed.expression)
    except InvalidFilterError as error:
        return Reason(
            "filter-invalid",
            f"the subscription, {subscribed.expression}, is none: {error}",
            "mend it; each read is refused with that error, which is in the member's log",
            {"expression": subscribed.expression},
        )
    if wanted is EVERYTHING:
        return None
    scan = partition.scan(offset, 1, 1, wanted)
    if scan.records:
        return None
    return Reason(
        "filtered",
        f"the subscription, {subscribed.expression}, lets none of the next "
        f"{counted(scan.next_offset - offset, 'message')} pass",
        "none is needed, members pass them over; or subscribe to other tags or properties",
        {
            "expression": subscribed.expression,
            "looked": scan.next_offset - offset,
            "isAll": scan.next_offset >= partition.maximum,
        },
    )
