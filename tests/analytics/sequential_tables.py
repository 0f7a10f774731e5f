"""The tables of messages by a replay in order: what their SQL must say, for any journal."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import sequential_lives as lives
from sequential import History
from sequential_entries import (
    ACK_FIELDS,
    MESSAGE_FIELDS,
    SUBSCRIPTION_FIELDS,
    Entry,
    read_entries,
)
from sequential_letters import letters_among

from lockkeeper.message.destination import SCHEMES, Destination
from lockkeeper.message.segments import SEGMENT_PREFIX, parse_segment
from lockkeeper_analytics.reading.partitions import counted_files
from lockkeeper_analytics.tables.messages import FACTS
from lockkeeper_analytics.tables.options import parse_options

Row = dict[str, Any]
WITHOUT_STREAMS = ("messages", "acks", "destinations")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def sequential_rows(directory: Path, table: str, **options: str) -> list[Row]:
    """Return the rows of *table* without the broker's name, lists in order of their values."""
    asked = parse_options({"path": str(directory), **options})
    wanted = (*MESSAGE_FIELDS, *ACK_FIELDS, *SUBSCRIPTION_FIELDS)
    entries = list(read_entries(str(directory), asked, wanted, FACTS))
    # Which messages are dead letters is told from all of the journal.
    held = _replayed(History(), entries).held
    told_apart = History("messages", "acks", "transactions", letters=letters_among(held))
    history = _replayed(told_apart, entries)
    rows = _ROWS[table](history, directory)
    told = [{"directory": str(directory)} | row for row in rows]
    return [row for row in told if table not in WITHOUT_STREAMS or not _is_of_streams(row)]


def _replayed(history: History, entries: list[Entry]) -> History:
    for _ in history.replay(entries):
        pass
    return history


def _is_of_streams(row: Row) -> bool:
    """Tell whether *row* is of a queue that streams are kept in: these have tables of their own."""
    name = str(row["destination"])
    return row["destination_kind"] == "queue" and name.startswith(SEGMENT_PREFIX)


def _owner(kind: str, name: str) -> str:
    """Return whose messages are at a destination: a stream's, where it is one of its segments."""
    segment = parse_segment(Destination(SCHEMES[kind], name))
    return f"{kind}://{name}" if segment is None else f"stream://{segment.stream}"


def _time(microseconds: int | None) -> datetime | None:
    return None if microseconds is None else EPOCH + timedelta(microseconds=microseconds)


def _bounds(name: str, earliest: int | None, latest: int | None) -> Row:
    return {f"{name}_earliest": _time(earliest), f"{name}_latest": _time(latest)}


def _milliseconds(start: int | None, end: int | None) -> int | None:
    return None if start is None or end is None else max(0, end - start) // 1000


def _messages(history: History, _directory: Path) -> Iterator[Row]:
    for message in history.messages:
        entry, located, last, over = message.entry, message.located, message.last, message.over
        died = message.dead_letter
        earliest, latest = (over.earliest, over.latest) if over else (None, None)
        yield {
            "destination_kind": entry.destination_kind,
            "destination": entry.destination,
            "message_id": entry.message_id,
            "copy_of": entry.copy_of,
            "outcome": message.outcome,
            "stored_at": _time(entry.stored_at),
            **_bounds("added", message.at.earliest, message.at.latest),
            **_bounds("ended", earliest, latest),
            "life_at_least_ms": _milliseconds(entry.stored_at, earliest),
            "life_at_most_ms": _milliseconds(entry.stored_at, latest),
            "consumer_id": last and last.entry.consumer_id,
            "acknowledged_by": sorted(
                end.entry.subscription for end in message.ends if end.entry.subscription
            ),
            "waiting_for": sorted(message.waiting),
            "dead_letter_destination": died and died.dead_letter,
            "end_cause": last and last.cause,
            "original_destination": entry.original_destination,
            "dead_letter_cause": entry.dead_letter_cause,
            "transaction": entry.transaction,
            "end_transaction": last and last.entry.transaction,
            "message_bytes": located.message_bytes,
            "file_id": located.file_id,
            "offset": located.offset,
            "record_bytes": located.record_bytes,
            **{
                name: _time(value) if name in ("sent_at", "expires_at") else value
                for name, value in zip(FACTS, message.facts, strict=True)
            },
        }


def _acks(history: History, _directory: Path) -> Iterator[Row]:
    for message, end in history.acks:
        entry, stored = end.entry, message.entry.stored_at if message else None
        yield {
            "destination_kind": entry.destination_kind,
            "destination": entry.destination,
            "message_id": entry.message_id,
            "subscription": entry.subscription,
            "outcome": end.outcome,
            **_bounds("acked_at", end.at.earliest, end.at.latest),
            "is_exact": end.at.earliest is not None and end.at.earliest == end.at.latest,
            "stored_at": _time(stored),
            "latency_at_least_ms": _milliseconds(stored, end.at.earliest),
            "latency_at_most_ms": _milliseconds(stored, end.at.latest),
            "ack_type": entry.ack_type,
            "consumer_id": entry.consumer_id,
            "cause": end.cause,
            "transaction": entry.transaction,
            "file_id": entry.file_id,
            "offset": entry.offset,
            "message_file_id": message and message.located.file_id,
        }


def _subscriptions(history: History, _directory: Path) -> Iterator[Row]:
    for life in [*history.ended_subscriptions, *history.subscriptions.values()]:
        entry, ended, last = life.entry, life.end, life.last
        there = history.destinations[entry.place].live.values() if life.state == "live" else ()
        waiting = [each for each in there if entry.subscription in each.waiting]
        yield {
            "subscription": entry.subscription,
            "destination_kind": entry.destination_kind,
            "destination": entry.destination,
            "state": life.state,
            "selector": entry.selector,
            "no_local": entry.no_local,
            "retroactive": entry.retroactive,
            **_bounds("created", entry.written_after, entry.written_before),
            **_bounds("ended", ended and ended.written_after, ended and ended.written_before),
            "pending": len(waiting),
            "pending_bytes": sum(each.located.message_bytes or 0 for each in waiting),
            "oldest_pending_at": _time(waiting[0].entry.stored_at) if waiting else None,
            "acknowledged": life.acknowledged,
            "unmatched": life.unmatched,
            **_bounds("last_ack", last and last.at.earliest, last and last.at.latest),
            "file_id": entry.file_id,
        }


def _destinations(history: History, _directory: Path) -> Iterator[Row]:
    counted = ("acknowledged", "dead_lettered", "expired", "dropped", "unmatched", "unwanted")
    for life in history.destinations.values():
        pending = [each for each in life.live.values() if each.state == lives.PENDING]
        yield {
            "destination_kind": life.place[0],
            "destination": life.place[1],
            "is_removed": life.is_removed,
            "stored": life.stored,
            "stored_bytes": life.stored_bytes,
            "first_stored_at": _time(life.first),
            "last_stored_at": _time(life.last),
            **{outcome: life.ends.get(outcome, 0) for outcome in (*counted, "duplicate")},
            "pending": len(pending),
            "pending_bytes": sum(each.located.message_bytes or 0 for each in pending),
            "oldest_pending_at": _time(pending[0].entry.stored_at) if pending else None,
            "in_doubt": sum(each.state == lives.IN_DOUBT for each in life.live.values()),
            "subscriptions": len(life.subscriptions),
        }


def _transactions(history: History, _directory: Path) -> Iterator[Row]:
    for identifier, opened in history.transactions:
        first, prepared, settled = opened.first, opened.prepared, opened.settled
        places = {(each.destination_kind, each.destination) for each in opened.operations}
        yield {
            "transaction": identifier,
            "kind": "xa" if identifier.startswith("XID:") else "local",
            "outcome": opened.outcome,
            "adds": opened.count("add"),
            "removes": opened.count("remove"),
            "message_bytes": sum(each.message_bytes or 0 for each in opened.operations),
            "destinations": sorted(f"{kind}://{name}" for kind, name in places),
            **_bounds("began", first.written_after, first.written_before),
            **_bounds(
                "prepared",
                prepared and prepared.written_after,
                prepared and prepared.written_before,
            ),
            **_bounds(
                "ended", settled and settled.written_after, settled and settled.written_before
            ),
            "file_id": first.file_id,
            "files": sorted(opened.files),
        }


class _Needs:
    """What needs a data file, and which others its records do something to."""

    def __init__(self, history: History, number: int) -> None:
        self.life = history.files.get(number) or lives.FileLife(number)
        self.messages = [
            (_owner(kind, name), each.located.record_bytes)
            for (kind, name), place in history.destinations.items()
            for each in place.live.values()
            if each.located.file_id == number
        ]
        self.owners = {
            owner: sum(each == owner for each, _ in self.messages)
            for owner in sorted({owner for owner, _ in self.messages})
        }
        self.subscriptions = sorted(
            {key for (_, key), one in history.subscriptions.items() if number in one.needs}
        )
        self.transactions = sorted(
            identifier for identifier, opened in history.open.items() if number in opened.files
        )


def _staying(needs: dict[int, _Needs], there: set[int], current: int) -> set[int]:
    staying = {
        number
        for number in there
        if number == current
        or needs[number].messages
        or needs[number].subscriptions
        or needs[number].transactions
    }
    while more := {
        number for number in there - staying if needs[number].life.refers & (staying - {number})
    }:
        staying |= more
    return staying


def _files(history: History, directory: Path) -> Iterator[Row]:
    found = counted_files(str(directory))
    needs = {each.file_id: _Needs(history, each.file_id) for each in found}
    there = {each.file_id for each in found if not each.is_archived}
    current = found[-1].file_id
    staying = _staying(needs, there, current)
    for file in found:
        need, number = needs[file.file_id], file.file_id
        acknowledges = sorted(need.life.refers & (staying - {number}))
        pins = ["it is being written"] * (number == current)
        pins += [f"{count} messages of {owner}" for owner, count in need.owners.items()]
        pins += [f"subscription {key}" for key in need.subscriptions]
        pins += [f"transaction {identifier}" for identifier in need.transactions]
        pins += [f"acknowledges messages in file {other}" for other in acknowledges]
        goes = number in there - staying
        yield {
            "file_id": number,
            "file": file.name,
            "file_bytes": file.size,
            "is_current": number == current,
            "is_archived": file.is_archived,
            "records": need.life.records,
            "adds": need.life.adds,
            "removes": need.life.removes,
            "first_at": _time(need.life.after),
            "last_at": _time(need.life.before),
            "live_messages": len(need.messages),
            "live_bytes": sum(size for _, size in need.messages),
            "live_by_destination": list(need.owners.items()),
            "subscriptions": need.subscriptions,
            "transactions": need.transactions,
            "acknowledges": acknowledges,
            "pinned_by": [] if file.is_archived or goes else pins,
            "freed_by_cleanup": goes,
        }


_ROWS = {
    "messages": _messages,
    "acks": _acks,
    "subscriptions": _subscriptions,
    "destinations": _destinations,
    "files": _files,
    "transactions": _transactions,
}
SEQUENTIAL = tuple(_ROWS)
