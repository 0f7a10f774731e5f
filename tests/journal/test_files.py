"""Data files of a directory."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from lockkeeper.journal.files import data_file_id, data_file_name, list_data_files


def test_names_and_numbers_belong_together() -> None:
    assert data_file_name(12) == "db-12.log"
    assert data_file_id("db-12.log") == 12


def test_other_names_have_no_number() -> None:
    others = ["db.data", "db-.log", "db--1.log", "db-1.log.bak", "DB-1.LOG", "db-99999999999.log"]
    assert [data_file_id(name) for name in others] == [None] * len(others)


def test_files_are_listed_in_numeric_order_without_empty_and_foreign_ones(tmp_path: Path) -> None:
    for name in ("db-10.log", "db-9.log", "db-2.log", "db.data", "lock", "db-log.template"):
        (tmp_path / name).write_bytes(b"content")
    (tmp_path / "db-3.log").touch()
    files = list_data_files(tmp_path)
    assert [file.file_id for file in files] == [2, 9, 10]
    assert files[0].path == tmp_path / "db-2.log"
    assert files[0].size == 7


@pytest.mark.parametrize(
    ("name", "make", "reason"),
    [
        ("db-4.log", lambda path: path.mkdir(), "no file, but a data file's name"),
        ("db-4.log", lambda path: path.symlink_to("/nowhere/db-4.log"), "no file, but a"),
        ("db-4.log", os.mkfifo, "no file, but a data file's name"),
        ("db-04.log", lambda path: path.write_bytes(b"content"), "must be called db-4.log"),
    ],
)
def test_what_only_looks_like_a_data_file_is_not_passed_over(
    tmp_path: Path, name: str, make: Callable[[Path], object], reason: str
) -> None:
    (tmp_path / "db-3.log").write_bytes(b"content")
    make(tmp_path / name)
    with pytest.raises(OSError, match=reason) as raised:
        list_data_files(tmp_path)
    assert raised.value.filename == str(tmp_path / name)
