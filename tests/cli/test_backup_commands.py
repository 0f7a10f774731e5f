import json
import shutil
import sys
from pathlib import Path

import pytest

from lockkeeper.cli.main import main

GOLDEN = Path(__file__).parents[1] / "golden" / "kahadb" / "amq-5.17.2-crash"


@pytest.fixture
def directory(tmp_path: Path) -> str:
    return str(shutil.copytree(GOLDEN, tmp_path / "kahadb"))


def test_a_backup_and_its_restore_say_what_was_done(
    directory: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target, restored = str(tmp_path / "backup"), str(tmp_path / "restored")
    assert main(["backup", directory, target]) == 0
    told = "291,267 bytes in 5 files, up to db-5.log:31776; 65 messages pending"
    assert capsys.readouterr().out == f"{target}: {told}\n"
    assert main(["restore", target, restored]) == 0
    assert capsys.readouterr().out == f"{restored}: restored from {target}; 65 messages pending\n"
    assert main(["restore", target, restored]) == 1
    assert "not empty, db-1.log is there; give a directory" in capsys.readouterr().err


def test_backups_beside_each_other_are_told_as_json(
    directory: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = tmp_path / "report"
    arguments = ["--keep", "2", "--json", "--report", str(report)]
    assert main(["backup", directory, str(tmp_path / "series"), *arguments]) == 0
    told = json.loads(capsys.readouterr().out)
    assert json.loads(report.read_text()) == {**told, "files": 5}
    (made,) = (tmp_path / "series").iterdir()
    assert told.pop("place") == str(made)
    assert told == json.loads((made / "manifest.json").read_text())
    assert (told["mark"], told["epoch"], told["pending"]) == ("db-5.log:31776", 0, 65)
    assert main(["restore", str(tmp_path / "series"), str(tmp_path / "restored")]) == 0
    assert f"restored from {made}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("until", "reason"),
    [
        ("yesterday", "--until yesterday: not a time such as 2026-11-24T03:50:00Z"),
        ("2026-11-24T03:50", "its time zone is missing; end it in Z for UTC"),
    ],
)
def test_a_time_is_read_with_its_zone(
    until: str, reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["restore", str(tmp_path), str(tmp_path / "new"), "--until", until]) == 2
    assert reason in capsys.readouterr().err


def test_a_url_needs_fsspec(
    directory: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "fsspec", None)
    assert main(["backup", directory, "s3://bucket/departures"]) == 1
    assert "URLs need fsspec: pip install 'lockkeeper-mq[backup]'" in capsys.readouterr().err


def test_an_unknown_kind_of_url_is_refused(
    directory: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["backup", directory, "nowhere://bucket"]) == 1
    assert "nowhere://bucket: Protocol not known: nowhere" in capsys.readouterr().err


def test_the_journal_of_another_broker_is_copied_as_a_backup_would_be(
    directory: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {path.name: path.read_bytes() for path in Path(directory).iterdir()}
    restored = tmp_path / "restored"
    assert main(["restore", directory, str(restored), "--journal"]) == 0
    assert "65 messages pending" in capsys.readouterr().out
    names = {path.name for path in restored.iterdir()}
    assert names == {"lock", *(name for name in before if name.endswith(".log"))}
    assert {path.name: path.read_bytes() for path in Path(directory).iterdir()} == before


def test_a_journal_that_is_there_is_left_alone_if_that_is_asked_for(
    directory: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    restored = tmp_path / "restored"
    arguments = ["restore", directory, str(restored), "--journal", "--if-empty"]
    assert main(arguments) == 0
    written = {path.name: path.stat().st_mtime_ns for path in restored.iterdir()}
    assert main(arguments) == 0
    assert "holds a journal already; nothing is restored" in capsys.readouterr().out
    assert {path.name: path.stat().st_mtime_ns for path in restored.iterdir()} == written
    # One that was broken off begins anew.
    (restored / ".restoring").mkdir()
    assert main(arguments) == 0
    assert "copied from" in capsys.readouterr().out
