"""Reasons that keep data files: live messages, subscriptions, transactions, acknowledgements.

A file may go when nothing live is in it and no record of it ends something in a file that stays
(kahadb.md section 6). What is collected here grows with files, never with messages.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lockkeeper_analytics.facts.effects import OUTCOMES, with_position
from lockkeeper_analytics.facts.grouping import DESTINATION, MESSAGE
from lockkeeper_analytics.facts.journal import Journal
from lockkeeper_analytics.facts.lives import (
    PURGE,
    REMOVES,
    live_subscriptions_of,
    subscriptions_of,
    waiting_in,
)
from lockkeeper_analytics.spark.collected import gathered

SEVERAL = 2
"""Of what keeps a file, two are as good as many: one of them can go, and the file stays."""


@dataclass(slots=True)
class Pins:
    """What is in a file that keeps it there, and the files whose messages its records end."""

    live: dict[str, int] = field(default_factory=dict)
    live_bytes: int = 0
    subscriptions: list[str] = field(default_factory=list)
    transactions: list[str] = field(default_factory=list)
    refers: set[int] = field(default_factory=set)

    @property
    def needs(self) -> bool:
        """Tell whether something in the file itself keeps it."""
        return bool(self.live or self.subscriptions or self.transactions)


def pins_of(journal: Journal) -> dict[str, dict[int, Pins]]:
    """Return what keeps the files of each directory, by directory and number.

    Files with a record are there, also those that nothing keeps.
    """
    asked = gathered(
        {
            "files": journal.records.select("directory", "file_id").distinct(),
            "live": _live(journal),
            "subscriptions": _subscriptions(journal),
            "transactions": _undecided(journal),
            "references": _references(journal),
        }
    )
    rows = {name: table.to_pylist() for name, table in asked.items()}
    found: dict[str, dict[int, Pins]] = {}
    for row in rows["files"]:
        found.setdefault(row["directory"], {})[row["file_id"]] = Pins()

    def of(row: dict[str, Any]) -> Pins:
        return found[row["directory"]][row["file_id"]]

    for row in rows["live"]:
        pins = of(row)
        pins.live[f"{row['destination_kind']}://{row['destination']}"] = row["messages"]
        pins.live_bytes += row["bytes"]
    for row in rows["subscriptions"]:
        of(row).subscriptions.append(row["subscription"])
    for row in rows["transactions"]:
        of(row).transactions.append(row["transaction"])
    for row in rows["references"]:
        of(row).refers.add(row["refers"])
    return found


def staying(needed: set[int], refers: Mapping[int, set[int]]) -> set[int]:
    """Return the files that must stay when those *needed* do; *refers* has all that are there."""
    kept = set(needed)
    while True:
        more = {number for number in refers.keys() - kept if refers[number] & (kept - {number})}
        if not more:
            return kept
        kept |= more


def kept_alone(needed: set[int], refers: Mapping[int, set[int]]) -> dict[int, set[int]]:
    """Return for each file *needed* the files that stay for nothing else, itself among them."""
    behind: dict[int, set[int]] = {}
    for number, others in refers.items():
        for other in others:
            behind.setdefault(other, set()).add(number)
    causes: dict[int, set[int]] = {}
    for start in sorted(needed):
        waiting = [start]
        while waiting:
            number = waiting.pop()
            known = causes.setdefault(number, set())
            if start not in known and len(known) < SEVERAL:
                known.add(start)
                waiting += behind.get(number, ())
    alone: dict[int, set[int]] = {number: set() for number in needed}
    for number, known in causes.items():
        if len(known) == 1:
            alone[min(known)].add(number)
    return alone


def _file(position: str) -> F.Column:
    return F.shiftright(position, 32).cast("int")


def _live(journal: Journal) -> DataFrame:
    """Count live messages by file and destination; one of a topic once."""
    waiting = waiting_in(journal.lives).select(*MESSAGE, "located", "record_bytes").distinct()
    return waiting.groupBy(*DESTINATION, _file("located").alias("file_id")).agg(
        F.count("*").alias("messages"), F.sum("record_bytes").alias("bytes")
    )


def _subscriptions(journal: Journal) -> DataFrame:
    """Return the file in which each live durable subscription was made."""
    live = live_subscriptions_of(journal.effects)
    return live.select("directory", "subscription", _file("since").alias("file_id")).distinct()


def _transactions(journal: Journal) -> DataFrame:
    """Return the files of each transaction, with the position of its outcome, if it has one."""
    placed = with_position(journal.records.where("transaction IS NOT NULL"))
    outcomes = placed.where(F.col("kind").isin(*OUTCOMES)).groupBy("directory", "transaction")
    ends = outcomes.agg(F.collect_list("position").alias("ends"))
    told = placed.where(~F.col("kind").isin(*OUTCOMES)).join(
        ends, ["directory", "transaction"], "left"
    )
    later = F.filter("ends", lambda end: end > F.col("position"))
    return told.select(
        "directory", "transaction", "file_id", F.array_min(later).alias("settled")
    ).distinct()


def _undecided(journal: Journal) -> DataFrame:
    """Return the files of each transaction that has no outcome."""
    open_ones = _transactions(journal).where("settled IS NULL")
    return open_ones.select("directory", "file_id", "transaction").distinct()


def _references(journal: Journal) -> DataFrame:
    """Return pairs of files: records in `file_id` end or move something that lies in `refers`."""
    lives, effects = journal.lives, journal.effects
    ended = lives.where(F.col("end_kind").isin(*REMOVES))
    pairs = [
        ended.select("directory", _file("ender"), _file("located")),
        lives.select("directory", _file("located"), _file("stored")),
        _transactions(journal)
        .where("settled IS NOT NULL")
        .select("directory", _file("settled"), "file_id"),
    ]
    subscribed = subscriptions_of(effects).where("until IS NOT NULL")
    pairs.append(subscribed.select("directory", _file("until.position"), _file("since")))
    purges = effects.where(F.col("kind") == PURGE).select(
        *DESTINATION, F.col("position").alias("purge")
    )
    there = effects.where(F.col("kind").isin("add", "subscribe"))
    purged = there.join(F.broadcast(purges), list(DESTINATION)).where("position < purge")
    pairs.append(purged.select("directory", _file("purge"), _file("record_position")))
    every = pairs[0].toDF("directory", "file_id", "refers")
    for pair in pairs[1:]:
        every = every.unionByName(pair.toDF("directory", "file_id", "refers"))
    return every.where("file_id <> refers").distinct()
