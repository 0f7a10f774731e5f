"""Long backlogs of several subscriptions: what is shared between them is seen as if it were not."""

import random
from collections import Counter, deque

import pytest

from lockkeeper.broker.regions import line as line_module
from lockkeeper.broker.regions import stretch as stretch_module
from lockkeeper.broker.regions.line import Line, Snapshot, pack_shared
from lockkeeper.broker.regions.stretch import Part
from lockkeeper.broker.shared_references import SharedReferences
from lockkeeper.store.base import WRITTEN, Reference
from lockkeeper.store.packed import RUN_MESSAGES, PackedRun


@pytest.mark.parametrize("seed", range(20))
def test_lines_that_share_messages_are_each_in_order(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(line_module, "RUN_MESSAGES", 7)
    chosen = random.Random(seed)
    lines = [Line() for _ in range(3)]
    expected: list[deque[Reference]] = [deque() for _ in lines]

    def change(at: int) -> None:
        line, plain = lines[at], expected[at]
        match chosen.randrange(6):
            case 0 | 1 if plain:
                assert line.popleft() is plain.popleft()
            case 2:
                line.append(one := Reference(None, 1))
                plain.append(one)
            case 3:
                line.appendleft(one := Reference(None, 1))
                plain.appendleft(one)
            case 4:
                gone = {each for each in plain if chosen.random() < 0.2}
                line.withdraw(gone)
                kept = [each for each in plain if each not in gone]
                plain.clear()
                plain.extend(kept)
            case 5:
                line.pack()

    for _ in range(600):
        if chosen.random() < 0.4:
            shared = SharedReferences(Reference(None, 1) for _ in range(chosen.randrange(1, 5)))
            for at in chosen.sample(range(len(lines)), chosen.randrange(1, 4)):
                lines[at].append_shared(shared)
                expected[at].extend(shared)
        else:
            change(chosen.randrange(len(lines)))
        for line, plain in zip(lines, expected, strict=True):
            assert list(line) == list(plain)
            assert list(line.loose()) == list(plain)
            assert len(line) == len(plain)
            assert not plain or line[0] is plain[0]


def test_lines_that_are_given_the_same_keep_one_list_of_it() -> None:
    lines = [Line([Reference(None, 1)]) for _ in range(3)]
    for _ in range(RUN_MESSAGES):
        shared = SharedReferences([Reference(None, 1)])
        for line in lines:
            line.append_shared(shared)
    parts = [[each for each in line.segments() if each][1:] for line in lines]
    assert [len(each) for each in parts] == [1, 1, 1]
    stretches = {id(part.stretch) for (part,) in parts if isinstance(part, Part)}
    assert len(stretches) == 1


class Shared:
    """Three lines with the same messages; beside each, where its messages are on the disk.

    `needed` says how many of the lines still need each message.
    """

    def __init__(self, seed: int) -> None:
        self.chosen = random.Random(seed)
        self.lines = [Line() for _ in range(3)]
        self.expected: list[deque[int]] = [deque() for _ in self.lines]
        self.needed: Counter[int] = Counter()
        self.location = 0
        self.packed = 0

    def add(self) -> None:
        references = []
        for _ in range(self.chosen.randrange(1, 5)):
            self.location += 1
            references.append(Reference(None, 1, self.location, WRITTEN))
        takers = [0, 1, 2] if self.chosen.random() < 0.8 else [self.chosen.randrange(3)]
        shared = SharedReferences(references)
        for reference in references:
            reference.holders = len(takers)
            self.needed[reference.location] = len(takers)
        for at in takers:
            self.lines[at].append_shared(shared)
            self.expected[at].extend(each.location for each in references)

    def take(self, at: int) -> None:
        for _ in range(min(len(self.lines[at]), self.chosen.randrange(20))):
            reference = self.lines[at].popleft()
            assert reference.location == self.expected[at].popleft()
            assert reference.holders == self.needed[reference.location]
            reference.holders -= 1
            self.needed[reference.location] -= 1

    def leave(self, at: int) -> None:
        """End all that waits in a line, as a subscription does that is deleted."""
        line = self.lines[at]
        ended: set[int] = set()
        line.leave_packed(lambda run: ended.update(each.location for each in run.shown()))
        while line:
            reference = line.popleft()
            reference.holders -= 1
            if not reference.holders:
                ended.add(reference.location)
        assert ended == {each for each in self.expected[at] if self.needed[each] == 1}
        self.needed.subtract(self.expected[at])
        self.expected[at].clear()

    def pack(self) -> None:
        pack_shared(self.lines)
        segments = [each for line in self.lines for each in line.segments()]
        self.packed += sum(isinstance(each, PackedRun) for each in segments)


@pytest.mark.parametrize("seed", range(20))
def test_messages_packed_for_several_lines_end_when_the_last_is_done(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(line_module, "RUN_MESSAGES", 7)
    monkeypatch.setattr(stretch_module, "RUN_MESSAGES", 7)
    shared = Shared(seed)
    snapshots: list[tuple[Snapshot, list[int]]] = []
    for _ in range(600):
        at = shared.chosen.randrange(3)
        match shared.chosen.randrange(12):
            case 0 | 1 | 2 | 3 | 4 | 5:
                shared.add()
            case 6 | 7:
                shared.take(at)
            case 8:
                shared.leave(at) if shared.chosen.random() < 0.2 else None
            case 9:
                segments = shared.lines[at].segments()
                snapshots.append((Snapshot(segments), list(shared.expected[at])))
            case _:
                shared.pack()
        for line, expected in zip(shared.lines, shared.expected, strict=True):
            assert [each.location for each in line] == list(expected)
            assert len(line) == len(expected)
    assert shared.packed > 100
    for snapshot, seen in snapshots:
        assert [each.location for each in snapshot] == seen
        snapshot.close()
    for at in (2, 0, 1):
        while shared.lines[at]:
            shared.take(at)
    assert set(shared.needed.values()) == {0}


def test_what_somebody_looks_at_is_not_packed_again() -> None:
    references = [Reference(None, 1, number + 1, WRITTEN) for number in range(4)]
    for reference in references:
        reference.holders = 2
    run = PackedRun(references, 2)
    looked_at = run.borrow()
    for reference in run.take_references():
        reference.holders -= 1
    run.pack_again(1)
    assert run.take_references() is looked_at
    run.give_back()
    run.pack_again(1)
    assert run.take_references() is not looked_at
    assert [(each.location, each.holders) for each in run.take_references()] == [
        (n, 1) for n in range(1, 5)
    ]
