import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from lockkeeper.cli.main import main

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


def contents(directory: Path) -> dict[str, tuple[int, bytes]]:
    return {path.name: (path.stat().st_mtime_ns, path.read_bytes()) for path in directory.iterdir()}


def test_looking_changes_nothing(directory: Path) -> None:
    before = contents(directory)
    main(["journal", "verify", str(directory)])
    main(["journal", "dump", str(directory)])
    assert contents(directory) == before
