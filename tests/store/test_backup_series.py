"""Backups beside each other: one that another process still makes is not deleted."""

import time
from pathlib import Path

import pytest
from store_kit import Kit

from lockkeeper.message.destination import queue
from lockkeeper.store.backup import back_up, restore
from lockkeeper.store.backup.manifest import MANIFEST_NAME
from lockkeeper.store.backup.places import LocalPlace
from lockkeeper.store.backup.series import BROKEN_OFF_SECONDS, choose, delete_old
from lockkeeper.store.kahadb import KahaDBStore

ORDERS = queue("ORDERS")


def stamp(ago: float) -> str:
    return time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(time.time() - ago))


@pytest.fixture
def journal(tmp_path: Path, kit: Kit) -> Path:
    store = KahaDBStore(tmp_path / "journal")
    store.open()
    store.add(ORDERS, kit.reference(1, ORDERS), None)
    kit.until_durable(store)
    store.close()
    return tmp_path / "journal"


def test_a_backup_that_is_overtaken_by_another_is_whole_all_the_same(
    journal: Path, tmp_path: Path
) -> None:
    series = LocalPlace(tmp_path / "series")

    class Slow(LocalPlace):
        def write(self, name: str, content: bytes) -> None:
            if name == MANIFEST_NAME:
                # Copied and read back; now another one begins, ends and deletes what is older.
                back_up(journal, series.below(stamp(0)))
                delete_old(series, keep=1)
            super().write(name, content)

    slow = Slow(tmp_path / "series" / stamp(3600))
    back_up(journal, slow)
    assert restore(LocalPlace(slow.directory), tmp_path / "restored") == 1


def test_what_was_broken_off_long_ago_is_deleted(journal: Path, tmp_path: Path) -> None:
    series = LocalPlace(tmp_path / "series")
    long_ago, lately = stamp(BROKEN_OFF_SECONDS + 60), stamp(BROKEN_OFF_SECONDS - 60)
    for name in (long_ago, lately, "99999999T999999Z"):
        series.below(name).write("db-1.log", b"half")
    newest = stamp(60)
    back_up(journal, series.below(newest))
    assert delete_old(series, keep=1) == 1
    assert series.names() == [lately, newest, "99999999T999999Z"]
    assert str(choose(series, None)).endswith(newest)
