"""Alert rules and dashboards ask for figures that there are."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from lockkeeper.server.metrics import exposition, families
from lockkeeper_operator.analyses.metrics import AnalysisFigures
from lockkeeper_operator.process.metrics import Metrics, Source

FILES = Path(__file__).parents[2] / "charts" / "lockkeeper" / "files"
ALERTS = FILES / "alerts.yaml"
DASHBOARDS = sorted((FILES / "dashboards").glob("*.json"))
OTHERS = {"kubelet_volume_stats_available_bytes", "kubelet_volume_stats_capacity_bytes"}
SUFFIXES = ("_bucket", "_count", "_sum", "_created", "_total")
DESTINATION = {
    "name": "A", "kind": "Queue", "temporary": False, "depth": 1, "inFlight": 0, "consumers": 0,
    "memoryBytes": 0, "enqueued": 0, "dequeued": 0, "dispatched": 0, "redelivered": 0,
    "expired": 0, "discarded": 0, "deadLettered": 0, "neverWritten": 0,
}  # fmt: skip
MASTER: dict[str, Any] = {
    "broker": "b", "replica": "b-0", "version": "1", "role": "master", "takesOver": False,
    "since": 1.0, "epoch": 1, "connections": 0, "memory": {"used": 0, "limit": 1},
    "store": {"files": 0, "bytes": 0, "waitingOperations": 0, "spooledBytes": 0},
    "blockedSends": [], "lease": None, "preparedTransactions": [],
    "containedErrors": {"counts": {"timer": 1}, "latest": []},
    "connectionsBeforeLogin": 0, "connectionsTurnedAway": {"beforeLogin": 0},
}  # fmt: skip


def known() -> set[str]:
    """Return the names of all figures of brokers and of the operator."""
    operator = Metrics()
    operator.watch(Source(dict, dict, dict))
    operator.watch(AnalysisFigures(lambda: ()))
    texts = (exposition(families(MASTER, [DESTINATION])), operator.text().decode())
    return {
        family.name + suffix
        for text in texts
        for family in text_string_to_metric_families(text)
        for suffix in ("", *SUFFIXES)
    } | OTHERS


def rules() -> list[dict[str, Any]]:
    groups = yaml.safe_load(ALERTS.read_text("utf-8"))["groups"]
    return [rule for group in groups for rule in group["rules"]]


def asked(expression: str) -> set[str]:
    return set(re.findall(r"\b(?:lockkeeper|kubelet)_[a-z_]+", expression))


def test_alerts_ask_for_figures_that_there_are() -> None:
    wanted = set().union(*(asked(rule["expr"]) for rule in rules()))
    assert len(wanted) > 10
    assert wanted - known() == set()


def test_every_alert_says_what_to_do() -> None:
    for rule in rules():
        assert rule["labels"]["severity"] in ("critical", "warning", "info")
        assert set(rule["annotations"]) == {"summary", "description"}
    assert len({rule["alert"] for rule in rules()}) == len(rules())


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.stem)
def test_a_dashboard_shows_figures_that_there_are(path: Path) -> None:
    board = json.loads(path.read_text("utf-8"))
    expressions = [target["expr"] for panel in board["panels"] for target in panel["targets"]] + [
        variable["query"]["query"]
        for variable in board["templating"]["list"]
        if variable["type"] == "query"
    ]
    assert len(expressions) > 5
    for expression in expressions:
        assert asked(expression), expression
        assert asked(expression) - known() == set(), expression
    places = [tuple(panel["gridPos"].values()) for panel in board["panels"]]
    assert len(set(places)) == len(places)


def test_promtool_takes_the_alerts() -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed")
    done = subprocess.run(
        [promtool, "check", "rules", str(ALERTS)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
