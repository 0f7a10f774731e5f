"""Long backlogs of several subscriptions: what is shared between them is seen as if it were not."""

import random
from collections import deque

import pytest

from lockkeeper.broker.outputs import SharedReferences
from lockkeeper.broker.regions import line as line_module
from lockkeeper.broker.regions.line import Line
from lockkeeper.store.base import Reference


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
    for _ in range(line_module.RUN_MESSAGES):
        shared = SharedReferences([Reference(None, 1)])
        for line in lines:
            line.append_shared(shared)
    parts = [[each for each in line.segments() if each][1:] for line in lines]
    assert [len(each) for each in parts] == [1, 1, 1]
    assert len({id(part.references) for (part,) in parts}) == 1
