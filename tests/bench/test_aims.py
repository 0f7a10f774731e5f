"""Aims, tried at a small size on a real broker; a missed bar is told."""

import dataclasses
import resource
from pathlib import Path

import aims
import aims_backlog
import aims_idle
import pytest
from aims_common import Figure, Settings

MOST = Figure("memory", 312.4, "MB", most=300)


@pytest.mark.parametrize(
    ("figure", "text"),
    [
        (MOST, "memory: 312 MB (aim: at most 300; MISSED, 1.04 of it)"),
        (dataclasses.replace(MOST, value=12), "memory: 12 MB (aim: at most 300; met)"),
        (
            Figure("rate", 0.5, "ratio", least=0.6),
            "rate: 0.5 (aim: at least 0.6; MISSED, 0.83 of it)",
        ),
        (Figure("rate", 0.6, "ratio", least=0.6), "rate: 0.6 (aim: at least 0.6; met)"),
        (Figure("rate", 12345.6, "messages/s"), "rate: 12,346 messages/s"),
    ],
)
def test_a_figure_stands_beside_its_bar(figure: Figure, text: str) -> None:
    assert str(figure) == text


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        (["speed"], "speed is not among backlog, start"),
        (["queues", "--count", "0"], "--count: at least 1"),
        (["queues", "start", "--count", "5"], "of one aim at a time"),
        (["--count", "5"], "of one aim at a time"),
    ],
)
def test_wrong_options_are_named(
    given: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        aims.arguments(given)
    assert complaint in capsys.readouterr().err


@pytest.mark.parametrize(("count", "most"), [(1000, 300), (1_000_001, 400), (10_000_001, None)])
def test_the_bar_is_that_of_the_size(count: int, most: float | None) -> None:
    assert aims_backlog.bar(count) == most


@pytest.mark.slow
@pytest.mark.patient
def test_a_missed_bar_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(aims_idle, "IDLE_SECONDS", 0.1)
    asked = ["queues", "--count", "400", "--directory", str(tmp_path)]
    monkeypatch.setattr(aims_idle, "QUEUE_BYTES_MAX", 1_000_000)
    assert aims.main(asked) == 0
    monkeypatch.setattr(aims_idle, "QUEUE_BYTES_MAX", -1)
    assert aims.main(asked) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [" MISSED" in line for line in lines] == [False] * 6 + [True, False]


@pytest.mark.slow
@pytest.mark.patient
def test_backlogs_are_filled_and_drained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aims_backlog, "FEW", 500)
    found = {each.name: each for each in aims_backlog.measure(Settings(tmp_path, 1_050))}
    assert found["memory with all that were sent"].most == 300
    assert found["drained"].value > 100
    assert found["of the rate of few"].least == 0.6


@pytest.mark.slow
@pytest.mark.patient
def test_connections_are_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aims_idle, "IDLE_SECONDS", 1.5)
    monkeypatch.setattr(aims_idle, "SETTLE_SECONDS", 0.1)
    monkeypatch.setattr(aims_idle, "LIFE_SIGNS_MS", 2_000)
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    found = {each.name: each for each in aims_idle.connections(Settings(tmp_path, 20))}
    assert found["silent, memory of each"].most == 8_000
    assert found["with life signs, connected"].value > 1
    # The limit of this process is everybody's.
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == before
