"""`lockkeeper analyze broker/NAME` against a real API server; the tests play the operator."""

import json
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from control_plane import ControlPlane

from lockkeeper.cli.main import main

BROKER = {
    "apiVersion": "lockkeeper.dev/v1alpha1",
    "kind": "Broker",
    "metadata": {"name": "orders"},
    "spec": {"replicas": 1},
}
KIND = "journalanalyses"
AT = "2027-03-01T03:00:00Z"
SECONDS = 20.0
Run = Callable[..., int]


@pytest.fixture
def run(
    control_plane: ControlPlane,
    namespace: str,
    monkeypatch: pytest.MonkeyPatch,
) -> Run:
    """A Broker in a namespace; what runs the command line about it."""
    control_plane.kubectl("apply", "-n", namespace, "-f", "-", text=json.dumps(BROKER))
    monkeypatch.setenv("KUBECTL", " ".join(control_plane.binaries.kubectl))
    own = [f"--kubeconfig={control_plane.kubeconfig}", "-n", namespace]
    return lambda *arguments: main(["analyze", *arguments, *own])


def analyses(control_plane: ControlPlane, namespace: str) -> list[dict[str, Any]]:
    text = control_plane.kubectl("get", KIND, "-n", namespace, "-o", "json")
    found: list[dict[str, Any]] = json.loads(text)["items"]
    return found


def tell(control_plane: ControlPlane, namespace: str, name: str, **status: Any) -> None:
    """Write a status, as the operator would."""
    control_plane.kubectl(
        *("patch", KIND, name, "-n", namespace, "--subresource=status", "--type=merge"),
        *("-p", json.dumps({"status": status})),
    )


def condition(kind: str, status: str, message: str) -> dict[str, str]:
    return {
        "type": kind, "status": status, "reason": kind, "message": message,
        "lastTransitionTime": AT,
    }  # fmt: skip


def operator(
    control_plane: ControlPlane, namespace: str, *statuses: dict[str, Any]
) -> threading.Thread:
    """Tell one status after the other of the analysis that is made."""

    def work() -> None:
        deadline = time.monotonic() + SECONDS
        while not (found := analyses(control_plane, namespace)):
            assert time.monotonic() < deadline
            time.sleep(0.2)
        for status in statuses:
            tell(control_plane, namespace, found[0]["metadata"]["name"], **status)
            time.sleep(2.5)

    thread = threading.Thread(target=work)
    thread.start()
    return thread


def test_what_is_asked_becomes_an_analysis_and_its_end_is_told_with_the_last_lines(
    run: Run,
    control_plane: ControlPlane,
    namespace: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    last = "lockkeeper: 7.log: damaged at 1024\nsee the log"
    thread = operator(
        control_plane,
        namespace,
        {"progressText": "reading 3 journal files (4/12)"},
        {"conditions": [condition("Failed", "True", last)]},
    )
    asked = ("--report", "latency", "--since", "24h", "--executors", "3", "--engine", "native")
    assert run("broker/orders", *asked, "-o", str(tmp_path)) == 1
    thread.join()
    (made,) = analyses(control_plane, namespace)
    assert made["metadata"]["name"].startswith("orders-")
    spec = made["spec"]
    assert spec["source"] == {"broker": "orders"}
    assert (spec["reports"], spec["since"], spec["engine"]) == (["latency"], "24h", "native")
    assert spec["executors"]["instances"] == 3
    assert spec["backoffLimit"] == 0
    assert spec["ttlSecondsAfterFinished"] == 3600
    told = capsys.readouterr().err
    assert "reading 3 journal files (4/12)" in told
    assert f"failed:\n{last}" in told


def test_one_that_is_deleted_meanwhile_was_cancelled(
    run: Run, control_plane: ControlPlane, namespace: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def cancel() -> None:
        deadline = time.monotonic() + SECONDS
        while not (found := analyses(control_plane, namespace)):
            assert time.monotonic() < deadline
            time.sleep(0.2)
        name = found[0]["metadata"]["name"]
        control_plane.kubectl("delete", KIND, name, "-n", namespace, "--wait=false")

    thread = threading.Thread(target=cancel)
    thread.start()
    assert run("broker/orders") == 1
    thread.join()
    assert "was deleted" in capsys.readouterr().err


def test_results_that_cannot_be_brought_are_where_the_error_says(
    run: Run, control_plane: ControlPlane, namespace: str, capsys: pytest.CaptureFixture[str]
) -> None:
    history = [{"name": "orders-1", "state": "Succeeded"}]
    ended = {"conditions": [condition("Succeeded", "True", "done")], "history": history}
    thread = operator(control_plane, namespace, ended)
    assert run("broker/orders") == 1
    thread.join()
    told = capsys.readouterr().err
    assert "it has succeeded, but the results could not be brought here" in told
    assert "kubectl port-forward service/orders-" in told


def test_a_broker_that_is_not_there_is_one_line_with_a_way_out(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("broker/nobody") == 1
    told = capsys.readouterr().err
    assert told.startswith("lockkeeper: ")
    assert told.count("\n") == 1
    assert '"nobody" not found' in told
    assert "`lockkeeper analyze DIR` reads a journal's directory without a cluster" in told
