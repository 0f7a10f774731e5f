"""`lockkeeper analyze broker/NAME`: when it is a Broker in a cluster, and where there is none."""

import json
import sys
from pathlib import Path

import pytest

from lockkeeper.cli.cluster.analyze import Asked, analysis_of, step_of
from lockkeeper.cli.main import analyses_a_broker, main
from lockkeeper_api.journal_analysis import JournalAnalysis


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (["analyze", "broker/orders", "--since", "24h"], True),
        (["analyze", "-n", "shop", "brokers/orders"], True),
        (["analyze", "broker/orders/data"], False),
        (["analyze", "./broker/orders"], False),
        (["send", "broker/orders", "tea"], False),
    ],
)
def test_a_broker_is_told_by_its_name(words: list[str], wanted: bool) -> None:
    assert analyses_a_broker(words) == wanted


def test_a_directory_of_that_name_comes_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broker" / "orders").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    assert not analyses_a_broker(["analyze", "broker/orders"])


@pytest.mark.parametrize("program", ["no-such-kubectl", "false"])
def test_without_a_cluster_the_error_names_the_way_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], program: str
) -> None:
    monkeypatch.setenv("KUBECTL", program)
    assert main(["analyze", "broker/orders"]) in (1, 2)
    told = capsys.readouterr().err
    assert told.startswith("lockkeeper: ")
    assert told.endswith("`lockkeeper analyze DIR` reads a journal's directory without a cluster\n")


@pytest.mark.parametrize("labels", [{}, {"lockkeeper.dev/class": "blue"}])
def test_the_operator_of_the_broker_carries_it_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, labels: dict[str, str]
) -> None:
    state = tmp_path / "state.json"
    state.write_text(json.dumps({"broker": {"metadata": {"labels": {**labels, "team": "tea"}}}}))
    program = Path(__file__).with_name("played_kubectl.py")
    monkeypatch.setenv("KUBECTL", f"{sys.executable} {program} {state}")
    assert main(["analyze", "broker/orders"]) == 1, "nobody carries it out here"
    (created,) = json.loads(state.read_text())["created"]
    assert created["metadata"].get("labels", {}) == labels


@pytest.mark.parametrize(
    ("broken", "code"), [(["p99 > 5s: ORDERS, 7 s for 12 min"], 3), ([], 0), (None, 0)]
)
def test_a_broken_rule_is_told_by_the_exit_code_beside_the_page(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    broken: list[str] | None,
    code: int,
) -> None:
    results = tmp_path / "results"
    results.mkdir()
    (results / "index.html").write_text("<title>Report</title>")
    run = {"name": "run-1"} | ({} if broken is None else {"brokenRules": broken})
    status = {
        "conditions": [{"type": "Succeeded", "status": "True", "reason": "", "message": ""}],
        "history": [run],
    }
    state = tmp_path / "state.json"
    broker: dict[str, object] = {"metadata": {}}
    state.write_text(
        json.dumps({"broker": broker, "analysis_status": status, "results": str(results)})
    )
    program = Path(__file__).with_name("played_kubectl.py")
    monkeypatch.setenv("KUBECTL", f"{sys.executable} {program} {state}")
    out = tmp_path / "out"
    words = ["analyze", "broker/orders", "--out", str(out), "--rule", "p99 > 5s"]
    assert main(words) == code
    (created,) = json.loads(state.read_text())["created"]
    assert created["spec"]["rules"] == ["p99 > 5s"]
    told = capsys.readouterr()
    assert told.out == f"{out / 'index.html'}\n"
    assert (out / "index.html").read_text() == "<title>Report</title>"
    broken_lines = [line for line in told.err.splitlines() if "broken" in line]
    assert broken_lines == [f"lockkeeper: broken: {each}" for each in broken or ()]


@pytest.mark.parametrize("broker", ["orders", "orders-" + "x" * 40, "o" * 28 + "-n"])
def test_names_are_those_that_an_analysis_may_have(broker: str) -> None:
    first, second = (analysis_of(broker, Asked()) for _ in range(2))
    names = [JournalAnalysis.model_validate(each).metadata.name for each in (first, second)]
    assert names[0] != names[1]
    assert all(len(name) <= 36 and "--" not in name for name in names)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--engine", "abacus"), "engine: "),
        (("--engine", "local", "--executors", "2"), "engine local has no executors"),
        (("--since", "yesterday"), "since: "),
        (("--report", "Latency!"), "reports[0]: "),
        (("--rule", "p98 > 5s"), "rules[0]: "),
    ],
)
def test_what_no_analysis_can_be_asked_is_refused_here(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], said: str
) -> None:
    assert main(["analyze", "broker/orders", *arguments]) == 2
    assert said in capsys.readouterr().err


def test_what_goes_on_is_the_driver_s_word_else_why_it_does_not_start() -> None:
    waiting = {
        "type": "Submitted", "status": "False", "reason": "ClaimMissing",
        "message": "there is no claim orders-journal",
    }  # fmt: skip
    assert step_of({}) == "starting"
    told = step_of({"status": {"conditions": [waiting]}})
    assert told == "there is no claim orders-journal (ClaimMissing)"
    assert step_of({"status": {"progressText": "report: latency"}}) == "report: latency"
