"""The report on networks by a walk through records in order: what its SQL must say."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from journal_maker import rows_of
from sequential_tables import Row, sequential_rows

Node = tuple[str | None, str]
"""A broker: the directory of its journal, None where that is not given, and its name."""
Key = tuple[str, str, str]
STARTS = ("start", "takeover")


class Hop(NamedTuple):
    """A message left *source* and came to the next broker: `target`, or whose journal it is."""

    key: Key
    source: str
    target: str | None
    directory: str
    way: tuple[str, ...]


class SequentialNetwork:
    """What the journals in *directories* tell of bridges, one broker after the other."""

    def __init__(self, directories: Sequence[Path]) -> None:
        self.directories = [str(each) for each in directories]
        self.events = [row for each in directories for row in rows_of(each, table="events")]
        self.adds: list[Row] = []
        for each in directories:
            adds = [row for row in rows_of(each) if row["kind"] == "add"]
            self.adds += [row for row in adds if not self._is_moved(row, adds)]
        self.names = {each: Path(each).name for each in self.directories}
        for event in self.events:
            if event["event"] in (*STARTS, "stop"):
                self.names[event["directory"]] = event["broker_name"]
        self.owners = self._owners()
        self.peers: dict[str, str] = {}
        for event in self.events:
            if event["peer_id"] and event["peer"]:
                known = self.peers.setdefault(event["peer_id"], event["peer"])
                self.peers[event["peer_id"]] = min(known, event["peer"])
        self._elect()

    @staticmethod
    def _is_moved(row: Row, others: list[Row]) -> bool:
        """Tell whether a message was there already, by the same way, where it was moved from."""
        return bool(row["broker_path"]) and any(
            other["message_id"] == row["message_id"]
            and other["broker_path"] == row["broker_path"]
            and f"{other['destination_kind']}://{other['destination']}"
            == row["original_destination"]
            for other in others
        )

    def _owners(self) -> dict[str, str]:
        owners: dict[str, str] = {}
        for event in self.events:
            if event["broker_id"]:
                known = owners.setdefault(event["broker_id"], event["directory"])
                owners[event["broker_id"]] = min(known, event["directory"])
        return owners

    def hops(self) -> Iterator[tuple[Hop, Any]]:
        """Yield each hop with the time when its message was stored, where it came to the journal's
        own broker."""
        for row in self.adds:
            path = tuple(row["broker_path"] or ())
            for at, source in enumerate(path):
                is_here = at + 1 == len(path)
                target = None if is_here else path[at + 1]
                hop = Hop(_key(row), source, target, row["directory"], path[: at + 1])
                yield hop, row["stored_at"] if is_here else None

    def _elect(self) -> None:
        """Find the journals of brokers of which no event tells: who had their messages before?"""
        held = defaultdict(set)
        for row in self.adds:
            held[_key(row), tuple(row["broker_path"] or ())].add(row["directory"])
        left = {
            (hop.key, hop.source, hop.way[:-1])
            for hop, _ in self.hops()
            if hop.key[0].endswith("queue") and hop.source not in self.owners
        }
        votes: dict[str, Counter[str]] = defaultdict(Counter)
        for key, source, way in left:
            votes[source].update(held[key, way])
        for source, counted in votes.items():
            most = [each for each, count in counted.items() if count == max(counted.values())]
            if len(most) == 1:
                self.owners[source] = most[0]

    def node(self, broker_id: str) -> Node:
        """Return whose id this is."""
        owner = self.owners.get(broker_id)
        if owner is not None:
            return owner, self.names[owner]
        return None, self.peers.get(broker_id, broker_id)

    def rows(self) -> list[Row]:
        """Return the rows of the report, in no order."""
        messages, times = self._messages()
        bridges, forwarded = self._bridges()
        waiting, stranded, everything = self._waiting()
        found = []
        for source, target in messages.keys() | bridges.keys():
            pair = source, target
            found.append(
                {
                    "source_directory": source[0],
                    "source": source[1],
                    "target_directory": target[0],
                    "target": target[1],
                    "bridges": sorted(bridges.get(pair, ())),
                    "forwarded": forwarded.get(pair),
                    "messages": len(messages.get(pair, ())),
                    "waiting": waiting[pair],
                    "stranded": stranded[pair],
                    "first_at": min(times.get(pair, ()), default=None),
                    "last_at": max(times.get(pair, ()), default=None),
                    "source_waiting": everything[source[0]] if source[0] else None,
                    "target_waiting": everything[target[0]] if target[0] else None,
                }
            )
        return found

    def _messages(self) -> tuple[dict[Any, set[Any]], dict[Any, list[Any]]]:
        messages, times = defaultdict(set), defaultdict(list)
        for hop, stored_at in self.hops():
            here = hop.directory, self.names[hop.directory]
            pair = self.node(hop.source), here if hop.target is None else self.node(hop.target)
            messages[pair].add((hop.key, hop.way))
            if stored_at is not None:
                times[pair].append(stored_at)
        return messages, times

    def _bridges(self) -> tuple[dict[Any, set[str]], dict[Any, int]]:
        started = [each for each in self.events if each["event"] == "bridgeStarted"]
        bridges, sent, received = defaultdict(set), defaultdict(list), defaultdict(list)
        for start in started:
            here = start["directory"], self.names[start["directory"]]
            there = self.node(start["peer_id"])
            if start["direction"] != "in":
                bridges[here, there].add(start["bridge"])
                sent[here, there].append(self._counted(start, "forwarded"))
            if start["direction"] != "out":
                bridges[there, here].add(start["bridge"])
                received[there, here].append(self._counted(start, "received"))
        forwarded = {}
        for pair in bridges:
            for counts in (received[pair], sent[pair]):
                if known := [count for count in counts if count is not None]:
                    forwarded[pair] = sum(known)
        return bridges, forwarded

    def _counted(self, start: Row, name: str) -> int | None:
        counts = (
            event[name]
            for event in self.events
            if (event["directory"], event["connection_id"])
            == (start["directory"], start["connection_id"])
        )
        return max((count for count in counts if count is not None), default=None)

    def _waiting(self) -> tuple[Counter[Any], Counter[Any], Counter[Any]]:
        waiting: Counter[Any] = Counter()
        stranded: Counter[Any] = Counter()
        everything: Counter[Any] = Counter()
        for directory in self.directories:
            unattended = self._unattended(directory)
            for row in sequential_rows(Path(directory), "messages"):
                if row["outcome"] != "pending":
                    continue
                everything[directory] += 1
                if row["broker_path"]:
                    here = directory, self.names[directory]
                    pair = self.node(row["broker_path"][-1]), here
                    waiting[pair] += 1
                    is_queue = row["destination_kind"].endswith("queue")
                    stranded[pair] += is_queue and _key(row)[:2] in unattended
        return waiting, stranded, everything

    def _unattended(self, directory: str) -> set[tuple[str, str]]:
        starts = [
            (event["file_id"], event["offset"])
            for event in self.events
            if event["directory"] == directory and event["event"] in STARTS
        ]
        consumers = {}
        for row in rows_of(Path(directory), table="statistics"):
            if (row["file_id"], row["offset"]) > max(starts, default=(0, -1)):
                consumers[row["destination_kind"], row["destination"]] = row["consumers"]
        return {place for place, count in consumers.items() if count == 0}


def _key(row: Row) -> Key:
    return row["destination_kind"], row["destination"], row["message_id"]
