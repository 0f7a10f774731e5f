"""Reports of the bench in Markdown: generated, never typed."""

import json
from pathlib import Path
from typing import Any

import pytest
import rendering
import scenarios

PAGE = f"# The bench\n\n{rendering.BEGIN}\nold\n{rendering.END}\n\nThe end.\n"


def test_a_report_becomes_a_table_for_each_scenario(report: dict[str, Any]) -> None:
    lines = rendering.markdown(report).splitlines()
    assert lines[:2] == [
        "Measured 2026-01-02 03:04 on 2 cores, made up, 8.0 GB, Linux; lockkeeper 1, rabbitmq 3.",
        "Medians of 2 rounds of 6 s after 3 s of warm-up; in brackets the least and the most.",
    ]
    assert lines[3:9] == [
        f"**a**: {scenarios.SCENARIOS['a']}",
        "",
        "| | messages/s | CPU µs | I/O calls | peak MB | p50 µs | p99 µs | p99.9 µs | syncs "
        "| rate, CPU: lockkeeper / it |",
        "|---|---|---|---|---|---|---|---|---|---|",
        "| lockkeeper | 2,100 (2,000 to 2,200) | 10.0 (10.0 to 10.0) | 2.50 | 64 "
        "| 100 (100 to 100) | 900 (900 to 900) | 1,000 (1,000 to 1,000) | 1.000 | 1.00, 1.00 |",
        "| rabbitmq | 950 (900 to 1,000) | 42.0 (40.0 to 44.0) | 2.50 | 64 "
        "| 100 (100 to 100) | 600 (600 to 600) | 1,000 (1,000 to 1,000) | - | 2.21, 0.24 |",
    ]
    # Where latency says nothing there is none.
    assert "| lockkeeper | 5,000 | 10.0 | 2.50 | 64 | 1.00, 1.00 |" in lines


def test_what_did_not_end_is_told(report: dict[str, Any]) -> None:
    failure = {"broker": "rabbitmq", "scenario": "d", "round": 2, "reason": "it did not end"}
    told = rendering.markdown(report | {"failures": [failure]}).splitlines()
    assert told[2] == "**d** at rabbitmq is left out from round 2 on: it did not end."


def test_a_broker_that_cannot_carry_a_scenario_says_why(report: dict[str, Any]) -> None:
    why = scenarios.unfit("rabbitmq", "h")
    assert why is not None
    assert f"| rabbitmq | {why} |" in rendering.markdown(report)


def test_all_in_which_the_first_broker_is_behind_is_listed(report: dict[str, Any]) -> None:
    behind = rendering.markdown(report).partition("**Where lockkeeper is behind**")[2]
    assert behind.splitlines()[2:] == [
        "- a, of rabbitmq's: p99 µs 1.50",
        "- d, of rabbitmq's: messages/s 0.50",
    ]


@pytest.mark.parametrize(
    ("index", "name", "value", "complaint"),
    [
        (0, "rate", float("nan"), "lockkeeper, scenario a, round 1: rate is nan"),
        (1, "cpu_us", -1, "rabbitmq, scenario a, round 1: cpu_us is -1"),
        (4, "scenario", "b", "lockkeeper, scenario b, round 1: no such scenario in this report"),
        (4, "broker", "artemis", "artemis, scenario d, round 1: no such broker in this report"),
        (4, "peak_mb", "64", "lockkeeper, scenario d, round 1: peak_mb is '64'"),
        (4, "speed", 1, "no report of the bench: TypeError"),
    ],
)
def test_what_cannot_have_been_measured_is_refused(
    index: int, name: str, value: object, complaint: str, report: dict[str, Any]
) -> None:
    report["results"][index][name] = value
    with pytest.raises(rendering.InvalidReportError) as refused:
        rendering.markdown(report)
    assert str(refused.value).startswith(complaint)


@pytest.mark.parametrize("told", [[], {}, None, {"results": 3}])
def test_other_files_are_no_reports(told: Any) -> None:
    with pytest.raises(rendering.InvalidReportError, match="no report of the bench"):
        rendering.markdown(told)


def test_a_typed_figure_in_the_page_is_found(
    tmp_path: Path, report: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    made, page = tmp_path / "report.json", tmp_path / "bench.md"
    made.write_text(json.dumps(report))
    page.write_text(PAGE)
    rendering.main([str(made), "--into", str(page)])
    rendering.main([str(made), "--check", str(page)])
    text = page.read_text()
    assert text.startswith(f"# The bench\n\n{rendering.BEGIN}\nMeasured ")
    assert text.endswith(f"{rendering.END}\n\nThe end.\n")
    page.write_text(text.replace("| 5,000 |", "| 15,000 |"))
    with pytest.raises(SystemExit, match="does not say what"):
        rendering.main([str(made), "--check", str(page)])


@pytest.mark.parametrize("page", ["", f"{rendering.END}{rendering.BEGIN}", rendering.BEGIN * 2])
def test_a_page_without_marks_is_left_alone(page: str) -> None:
    with pytest.raises(rendering.InvalidReportError, match="the page has no"):
        rendering.placed(page, "text")


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    broken = tmp_path / "broken.json"
    broken.write_text("{")
    for file, words in ((broken, "Expecting"), (tmp_path / "none.json", "No such file")):
        with pytest.raises(SystemExit) as refused:
            rendering.main([str(file)])
        assert str(refused.value).startswith(f"{file}: ")
        assert words in str(refused.value)
