import contextlib
import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest

from lockkeeper.cli.main import main
from lockkeeper.store.kahadb.recovery import replay_directory

GOLDEN = Path(__file__).parents[1] / "golden" / "kahadb"
DIRECTORIES = ["amq-5.17.2-clean", "amq-5.17.2-crash", "amq-6.1.7-clean", "amq-6.1.7-crash"]
KINDS = {"add": "add-message", "remove": "remove-message", "ackmap": "ack-file-map"}


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return shutil.copytree(GOLDEN / "amq-5.17.2-crash", tmp_path / "kahadb")


def flip(path: Path, offset: int) -> None:
    data = bytearray(path.read_bytes())
    data[offset] ^= 0xFF
    path.write_bytes(data)


def golden_records(name: str) -> list[dict[str, Any]]:
    lines = (GOLDEN / f"{name}.records.jsonl").read_text("utf-8").splitlines()
    return [entry for entry in map(json.loads, lines) if entry["kind"] == "rec"]


@pytest.mark.parametrize("name", DIRECTORIES)
def test_a_directory_of_activemq_is_sound(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["journal", "verify", "--json", str(GOLDEN / name)]) == 0
    reports = json.loads(capsys.readouterr().out)
    assert [report["problems"] for report in reports] == [[]] * len(reports)
    assert sum(report["records"] for report in reports) == len(golden_records(name))


@pytest.mark.parametrize("name", DIRECTORIES)
def test_what_every_file_keeps_is_recounted(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["journal", "verify", "--deep", "--json", str(GOLDEN / name)]) == 0
    files = json.loads(capsys.readouterr().out)
    with contextlib.ExitStack() as stack:
        copy = stack.enter_context(tempfile.TemporaryDirectory())
        replayed = replay_directory(shutil.copytree(GOLDEN / name, Path(copy) / "kahadb"))
    recovered = replayed.recovered
    kept = {one.location for references in recovered.queues.values() for one in references}
    kept |= {one.location for entry in recovered.subscriptions for one in entry.pending}
    prepared = [one for several in recovered.prepared.values() for one in several]
    kept |= {each.location for one in prepared for each in one.references}
    assert sum(file["live"] for file in files) == len(kept) > 0
    assert not any(file["superseded"] for file in files)


@pytest.mark.parametrize("name", DIRECTORIES)
def test_every_record_is_dumped_where_it_stands(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["journal", "dump", "--json", str(GOLDEN / name)]) == 0
    dumped = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    expected = golden_records(name)
    places = [(entry["file"], entry["offset"], entry["size"]) for entry in dumped]
    assert places == [(entry["file"], entry["offset"], entry["size"]) for entry in expected]
    for ours, theirs in zip(dumped, expected, strict=True):
        assert KINDS.get(theirs["command"], ours["record"]) == ours["record"]
        assert "malformed" not in json.dumps(ours)


def test_a_dumped_message_has_its_headers_and_properties(
    capsys: pytest.CaptureFixture[str],
) -> None:
    arguments = ["--json", "--destination", "GOLD.TYPES", str(GOLDEN / "amq-5.17.2-clean")]
    assert main(["journal", "dump", *arguments]) == 0
    dumped = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {entry["destination"] for entry in dumped} == {"queue://GOLD.TYPES"}
    messages = [entry["message"] for entry in dumped if entry["record"] == "add-message"]
    assert {"ActiveMQTextMessage", "ActiveMQMapMessage"} <= {item["type"] for item in messages}
    assert any(item.get("properties") for item in messages)


def test_lines_name_place_kind_and_subject(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["journal", "dump", str(GOLDEN / "amq-5.17.2-crash")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("db-1.log:28  trace  LOADED ")
    assert "db-1.log:100  subscription  topic://GOLD.TOPIC  client-1:sub-all  103 bytes" in lines


def test_a_flipped_byte_is_found_and_the_rest_still_read(
    directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flip(directory / "db-2.log", 30_000)
    assert main(["journal", "verify", str(directory)]) == 1
    out = capsys.readouterr().out
    assert "damaged (1)" in out
    assert "db-2.log: corrupt batch at offset 29797: its Adler-32 does not match" in out
    assert main(["journal", "dump", str(directory)]) == 1
    dumped = capsys.readouterr()
    assert "corrupt batch at offset 29797" in dumped.err
    assert len(dumped.out.splitlines()) == len(golden_records("amq-5.17.2-crash")) - 1


def test_a_torn_tail_of_the_last_file_is_no_damage(
    directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = directory / "db-5.log"
    path.write_bytes(path.read_bytes()[:31_000])
    assert main(["journal", "verify", str(directory)]) == 0
    assert "torn tail at 21,632" in capsys.readouterr().out
    assert main(["journal", "dump", str(directory)]) == 0
    assert "db-5.log: torn tail at offset 21632" in capsys.readouterr().err


def test_what_is_preallocated_may_follow_a_torn_tail(
    directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = directory / "db-5.log"
    path.write_bytes(path.read_bytes()[:31_000])
    (directory / "db-6.log").write_bytes(bytes(65_536))
    assert main(["journal", "verify", str(directory)]) == 0
    assert "torn tail at 21,632" in capsys.readouterr().out
    assert main(["journal", "dump", str(directory)]) == 0


def test_a_torn_tail_of_an_earlier_file_is_damage(
    directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = directory / "db-3.log"
    path.write_bytes(path.read_bytes()[:60_000])
    assert main(["journal", "verify", str(directory)]) == 1
    assert "db-3.log: torn tail at offset 59624" in capsys.readouterr().out
    assert main(["journal", "dump", str(directory)]) == 1


def test_a_directory_without_a_journal_is_refused_with_a_hint(
    directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["journal", "verify", str(directory.parent)]) == 2
    assert f"no journal here, files db-N.log are expected; did you mean {directory}?" in (
        capsys.readouterr().err
    )


def test_a_sound_copy_of_a_damaged_directory_is_made_with_a_report(
    directory: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = len(golden_records("amq-5.17.2-crash"))
    flip(directory / "db-2.log", 30_000)
    was = contents(directory)
    copy = tmp_path / "copy"
    assert main(["journal", "salvage", "--json", str(directory), str(copy)]) == 0
    (loss,) = json.loads(capsys.readouterr().out)
    assert (loss["file_name"], loss["offset"]) == ("db-2.log", 29797)
    assert json.loads((copy / "salvage.json").read_text()) == [loss]
    assert contents(directory) == was
    assert main(["journal", "verify", str(copy)]) == 0
    capsys.readouterr()
    assert main(["journal", "dump", str(copy)]) == 0
    assert len(capsys.readouterr().out.splitlines()) == before - 1
    assert main(["journal", "salvage", str(directory), str(copy)]) == 1
    assert f"{copy}: not empty" in capsys.readouterr().err
    other = tmp_path / "other"
    assert main(["journal", "salvage", str(directory), str(other)]) == 0
    shown = capsys.readouterr().out
    assert "db-2.log  29,797  1,028" in shown and "queue://GOLD.BULK" in shown


def contents(directory: Path) -> dict[str, tuple[int, bytes]]:
    return {path.name: (path.stat().st_mtime_ns, path.read_bytes()) for path in directory.iterdir()}


def test_looking_changes_nothing(directory: Path) -> None:
    before = contents(directory)
    main(["journal", "verify", str(directory)])
    main(["journal", "dump", str(directory)])
    assert contents(directory) == before
