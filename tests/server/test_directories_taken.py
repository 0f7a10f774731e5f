"""Which directories a broker takes for its own."""

from pathlib import Path

import pytest

from lockkeeper.server.storage import Storage
from lockkeeper.store.base import StoreError


@pytest.mark.parametrize(
    "names",
    [
        ["lost+found"],
        ["next-0123456789abcdef.zeros"],
        ["next.zeros"],
        ["spool-abcdefgh.bodies"],
        ["mended-0123456789abcdef.part"],
        ["damaged", "notes.txt"],
    ],
)
def test_an_empty_volume_and_what_a_killed_broker_left_are_taken(
    names: list[str], tmp_path: Path
) -> None:
    for name in names:
        (tmp_path / name).touch()
    assert Storage(tmp_path).try_lock()


def test_a_volume_with_the_files_of_somebody_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "lost+found").mkdir()
    (tmp_path / "beach.jpg").touch()
    with pytest.raises(StoreError, match=r"not a journal's directory.* \(beach.jpg\)"):
        Storage(tmp_path)
