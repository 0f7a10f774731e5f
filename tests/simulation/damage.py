"""Damage at rest: bytes of a journal that change while nobody runs; told, and never skipped."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simulation.crowd import DEAD_LETTERS
from simulation.hub import SECOND

from lockkeeper.journal.decode import decode_record
from lockkeeper.journal.files import list_data_files
from lockkeeper.journal.records import (
    AddMessage,
    Record,
    RemoveDestination,
    RemoveMessage,
    UpdateMessage,
)
from lockkeeper.journal.scan import Batch, record_offsets, scan_file
from lockkeeper.message.layout import read_lead
from lockkeeper.message.text import decode_text
from lockkeeper.store.base import DamagedError
from lockkeeper.store.kahadb.losses import ALTERED, UNNAMED, Loss

if TYPE_CHECKING:
    from simulation.life import Life

SECTOR = 512
SECONDS_MAX = 120
MESSAGE_AT = 4
"""A message in the journal has its size in front."""
ILLEGIBLE = "nothing can be read there"
_RANGE = re.compile(r"(\S+):(\d+) to \S+:(\d+) of ")
_OUTCOME = re.compile(r"the (commit|rollback|prepare) of |may have ended there")


@dataclass
class Harm:
    """What the records of the batches that were changed say, read before: nobody else knows.

    The ids of messages that begin there, or in a transaction with a part there; of those that
    end; and the places that end with all that is in them. `legible` are the ids of all messages
    whose records nothing has happened to.
    """

    begun: set[str] = field(default_factory=set)
    ended: set[str] = field(default_factory=set)
    in_transactions: set[str] = field(default_factory=set)
    removed: set[str] = field(default_factory=set)
    legible: set[str] = field(default_factory=set)

    def rename(self, records: list[Record]) -> None:
        """Give messages the ids that clients know, as *records*, all there are, tell them."""
        shown = {
            each.message_id: _shown_id(each) for each in records if isinstance(each, AddMessage)
        }
        for names in (self.begun, self.ended, self.in_transactions):
            names |= {shown.get(name, name) for name in names}


def spoil(life: "Life") -> Harm | None:
    """Flip bits of a data file, or clear sectors; None when there is nothing to spoil.

    The last batch of a file is left alone: it cannot be told from one that a power cut tore.
    Half of the time it is the file that was written last, where an interrupted write may be.
    """
    chance = life.chance
    for process in life.pair.processes():
        life.world.hub.kill(process)
    files = []
    for file in list_data_files(life.pair.directory):
        batches = scan_file(file.path.read_bytes(), file.path.name).batches
        if len(batches) > 1:
            files.append((file.path, batches))
    if not files:
        return None
    path, batches = files[-1] if chance.random() < 0.5 else chance.choice(files)
    end = batches[-1].offset
    at = chance.randrange(end)
    with path.open("r+b") as data:
        if chance.random() < 0.5:
            data.seek(at)
            changed = bytes([data.read(1)[0] ^ 1 << chance.randrange(8)])
        else:
            at -= at % SECTOR
            changed = bytes(min(end - at, SECTOR * chance.choice((1, 1, 8))))
        data.seek(at)
        if data.read(len(changed)) == changed:
            return None
        hurt = [one for one in batches if one.offset < at + len(changed) and at < one.end]
        harm = _harm(life.pair.directory, path, hurt)
        data.seek(at)
        data.write(changed)
    life.world.disk.take_for_durable(path)
    life.pair.note(f"{len(changed)} bytes of {path.name} at {at} are changed")
    return harm


def _harm(directory: Path, path: Path, hurt: list[Batch]) -> Harm:
    """Return what the batches *hurt* of the file at *path* mean for the journal."""
    harm = Harm()
    everything: list[Record] = []
    transactions = set()
    for file in list_data_files(directory):
        data = file.path.read_bytes()
        for batch in scan_file(data, file.path.name).batches:
            found = list(_records(data, batch))
            everything += found
            if file.path == path and batch in hurt:
                transactions |= {getattr(record, "transaction", None) for record in found}
                _note(harm, found)
            else:
                harm.legible |= {_shown_id(one) for one in found if isinstance(one, AddMessage)}
    parts = [each for each in everything if getattr(each, "transaction", None) in transactions]
    parts = [each for each in parts if getattr(each, "transaction", None) is not None]
    harm.in_transactions = _note(harm, parts)
    harm.rename(everything)
    return harm


def _records(data: bytes, batch: Batch) -> Iterator[Record]:
    for offset, size in record_offsets(data, batch):
        record = decode_record(data[offset : offset + size])
        yield record.add if isinstance(record, UpdateMessage) else record


def _note(harm: Harm, records: list[Record]) -> set[str]:
    """Note what records mean; returns the ids of their messages."""
    begun = {each.message_id for each in records if isinstance(each, AddMessage)}
    ended = {each.message_id for each in records if isinstance(each, RemoveMessage)}
    ends = [each.destination.name for each in records if isinstance(each, RemoveDestination)]
    harm.begun |= begun
    harm.ended |= ended
    harm.removed.update(ends)
    return begun | ended


def _shown_id(record: AddMessage) -> str:
    """Return the id that clients know: in the journal copies have one of their own."""
    lead = read_lead(record.message, MESSAGE_AT, len(record.message))
    return record.message_id if lead.text_view is None else decode_text(lead.text_view)


def survive(life: "Life", harm: Harm) -> None:
    """Have the pair find the damage, and go on with what is sound; compare what it says."""
    pair, hub = life.pair, life.world.hub
    pair.refusals.clear()
    end = hub.now + SECONDS_MAX * SECOND
    hub.run(lambda: bool(pair.refusals) or life.serves(), end)
    if not pair.refusals:
        hub.problem("a damage is passed over")
        return
    if not all(isinstance(each, DamagedError) for each in pair.refusals):
        hub.problem(f"damage is refused as {pair.refusals}")
    pair.accepts_loss = True
    life.settle()
    found = life.read_all()
    losses = [each for each in pair.losses if isinstance(each, Loss)]
    if not losses:
        hub.problem("the loss was accepted, and nobody says what is lost")
    for problem in _unexplained(life.books, found, losses, harm):
        hub.problem(problem)


def _unexplained(
    books: Any, found: dict[str, list[str]], losses: list[Loss], harm: Harm
) -> list[str]:
    """Return what is otherwise than it was without being damaged, or without being told."""
    told = {one["message"] for loss in losses for one in loss.lost}
    texts = [text for loss in losses for text in loss.unsure]
    problems = []
    # A bit of an id may be what has changed.
    unnamed = texts.count(ALTERED)
    elsewhere = {entry.message for entry in books._gone}.union(*found.values())
    known = _numbers(harm.legible | told)
    for place, names in found.items():
        before = set(books._live.get(place, ()))
        for name in before.difference(names):
            if name not in harm.begun | harm.in_transactions:
                problems.append(f"{name} of {place} is lost, and was not damaged")
            elif name not in told and not _is_told(
                name, texts, harm, name in elsewhere or _is_edge(name, known)
            ):
                unnamed -= 1
                if unnamed < 0:
                    problems.append(f"{name} of {place} is lost, and nobody tells")
        if place in harm.removed or place == DEAD_LETTERS:
            # What expires becomes a dead letter at any time.
            continue
        problems += [
            f"{name} of {place} is there again, and its end was not damaged"
            for name in set(names) - before - harm.ended
        ]
    return problems[:3]


def _is_edge(name: str, known: dict[str, list[int]]) -> bool:
    """Tell whether no earlier message of its producer is known, or no later one."""
    producer, _, number = name.rpartition(":")
    others = known.get(producer, [])
    return not others or not min(others) < int(number) < max(others)


def _numbers(names: set[str]) -> dict[str, list[int]]:
    """Return the numbers that are known of each producer."""
    numbers: dict[str, list[int]] = {}
    for name in names:
        producer, _, number = name.rpartition(":")
        numbers.setdefault(producer, []).append(int(number))
    return numbers


def _is_told(name: str, texts: list[str], harm: Harm, is_unnamed: bool) -> bool:
    """Tell whether what is said to be unsure covers a message."""
    if ILLEGIBLE in texts or (UNNAMED in texts and is_unnamed):
        return True
    if name in harm.in_transactions and any(map(_OUTCOME.search, texts)):
        return True
    return any(_tells_of(text, name) for text in texts)


def _tells_of(text: str, name: str) -> bool:
    producer, _, number = name.rpartition(":")
    found = _RANGE.match(text)
    if found is not None and found[1] == producer:
        return int(found[2]) <= int(number) <= int(found[3])
    return f"{name} of " in text
