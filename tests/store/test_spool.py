"""Temporary files: bodies come back as they went, and room is given back."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from store_kit import Kit

from lockkeeper.store import spool as spool_module
from lockkeeper.store.base import Reference
from lockkeeper.store.spool import Spool


@pytest.fixture
def spool(tmp_path: Path) -> Iterator[Spool]:
    spool = Spool(tmp_path, None)
    yield spool
    spool.close()


@pytest.fixture
def small_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool_module, "FILE_BYTES", 1000)


def unload(references: list[Reference]) -> list[bytes]:
    """Take the bodies out of memory; returns them."""
    bodies = [one.loaded.body for one in references]
    for one in references:
        one.message = None
    return bodies


def test_bodies_come_back_as_they_went(spool: Spool, kit: Kit, small_files: None) -> None:
    references = [kit.reference(number, size=50 * number + 6) for number in range(30)]
    assert spool.put(references) == 30
    sequences = [one.loaded.sequence for one in references]
    before = unload(references)
    spool.load(references[::-1], 7000)
    assert [kit.number_of(one) for one in references] == list(range(30))
    for index, (one, body) in enumerate(zip(references, before, strict=True)):
        assert one.loaded.sequence == 7029 - index
        assert one.loaded.body.replace(
            one.loaded.sequence.to_bytes(8, "big"), sequences[index].to_bytes(8, "big")
        ) == body  # fmt: skip


def test_only_what_is_only_on_disk_is_loaded(spool: Spool, kit: Kit) -> None:
    references = [kit.reference(number) for number in range(3)]
    spool.put(references[:2])
    unload([references[0], references[2]])
    kept = references[1].message
    spool.load(references, 100)
    assert kit.number_of(references[0]) == 0
    assert references[1].message is kept
    assert references[2].message is None


def test_room_is_given_back_file_by_file(spool: Spool, kit: Kit, small_files: None) -> None:
    references = [kit.reference(number, size=200) for number in range(12)]
    spool.put(references)
    full = spool.used
    spool.forget(references[1:])
    assert 0 < spool.used < full
    assert references[5].location == 0
    spool.forget(references[:1])
    assert spool.used == 0


def test_a_body_longer_than_a_file_has_one_of_its_own(
    spool: Spool, kit: Kit, small_files: None
) -> None:
    references = [kit.reference(1), kit.reference(2, size=5000), kit.reference(3)]
    assert spool.put(references) == 3
    unload(references)
    spool.load(references, 1)
    assert [kit.number_of(one) for one in references] == [1, 2, 3]


def test_what_goes_beyond_the_limit_stays_in_memory(
    tmp_path: Path, kit: Kit, small_files: None
) -> None:
    references = [kit.reference(number, size=200) for number in range(12)]
    size = len(references[0].loaded.body)
    spool = Spool(tmp_path, 5 * size)
    assert not spool.is_full
    assert spool.put(references) == 5
    assert spool.is_full
    assert references[5].location == 0
    spool.forget(references[:4])
    assert not spool.is_full
    assert spool.put(references[5:]) >= 1
    assert spool.used <= 5 * size
    spool.close()
    assert spool.used == 0


def test_no_file_is_left_when_the_process_ends(spool: Spool, kit: Kit, tmp_path: Path) -> None:
    spool.put([kit.reference(1)])
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_a_full_spool(
    spool: Spool, kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_room(*_: object) -> None:
        raise OSError(28, os.strerror(28))

    with monkeypatch.context() as patched:
        patched.setattr(os, "pwrite", no_room)
        assert spool.put([kit.reference(1)]) == 0
        assert spool.is_full
    first = kit.reference(2)
    assert spool.put([first]) == 1
    spool.forget([first])
    assert not spool.is_full
