"""`kubectl lockkeeper backup` and `restore` against a real API server; tests play the operator."""

import json
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from control_plane import ControlPlane

from lockkeeper.cli.cluster.main import main

BROKER = {
    "apiVersion": "lockkeeper.dev/v1alpha1",
    "kind": "Broker",
    "metadata": {"name": "orders", "labels": {"lockkeeper.dev/class": "blue"}},
    "spec": {
        "replicas": 2,
        "hibernated": True,
        "paused": True,
        "storage": {"existingClaim": "old"},
        "listeners": [
            {
                "name": "openwire",
                "tls": {},
                "advertisedUrls": ["ssl://orders-0.example.com:443"],
                "route": {"host": "orders.example.com", "ingressClassName": "nginx"},
                "service": {
                    "type": "NodePort",
                    "nodePort": 31616,
                    "annotations": {
                        "external-dns.alpha.kubernetes.io/hostname": "orders.example.com",
                        "example.com/internal": "true",
                    },
                },
            }
        ],
    },
}
NIGHTLY: dict[str, Any] = {
    "apiVersion": "lockkeeper.dev/v1alpha1",
    "kind": "JournalBackup",
    "metadata": {"name": "nightly"},
    "spec": {"broker": "orders", "target": {"claim": {"name": "backups"}}, "keep": 3},
}
RESULT = {
    "place": "/backups/nightly/20270301T030000Z", "takenAt": "2027-03-01T03:00:00Z",
    "mark": "db-3.log:77", "epoch": 4, "files": 3, "size": 9000, "pending": 12,
}  # fmt: skip
SECONDS = 20.0
Run = Callable[..., int]


@pytest.fixture
def run(control_plane: ControlPlane, namespace: str, monkeypatch: pytest.MonkeyPatch) -> Run:
    """A Broker in a namespace; what runs the command line there."""
    apply(control_plane, namespace, BROKER)
    monkeypatch.setenv("KUBECTL", " ".join(control_plane.binaries.kubectl))
    own = [f"--kubeconfig={control_plane.kubeconfig}", "-n", namespace]
    return lambda *arguments: main([*arguments, *own])


def apply(control_plane: ControlPlane, namespace: str, resource: dict[str, Any]) -> None:
    control_plane.kubectl("apply", "-n", namespace, "-f", "-", text=json.dumps(resource))


def found(control_plane: ControlPlane, namespace: str, kind: str) -> dict[str, Any]:
    text = control_plane.kubectl("get", kind, "-n", namespace, "-o", "json")
    return {each["metadata"]["name"]: each for each in json.loads(text)["items"]}


def operator(
    control_plane: ControlPlane, namespace: str, kind: str, known: set[str], **status: Any
) -> threading.Thread:
    """Write the status of the first new resource of a kind, as the operator does."""

    def work() -> None:
        deadline = time.monotonic() + SECONDS
        while not (new := set(found(control_plane, namespace, kind)) - known):
            assert time.monotonic() < deadline
            time.sleep(0.2)
        control_plane.kubectl(
            *("patch", kind, new.pop(), "-n", namespace, "--subresource=status", "--type=merge"),
            *("-p", json.dumps({"status": status})),
        )

    thread = threading.Thread(target=work)
    thread.start()
    return thread


def condition(kind: str, message: str) -> dict[str, str]:
    return {
        "type": kind, "status": "True", "reason": kind, "message": message,
        "lastTransitionTime": "2027-03-01T03:00:00Z",
    }  # fmt: skip


def test_a_backup_goes_where_those_of_the_broker_go(
    run: Run, control_plane: ControlPlane, namespace: str, capsys: pytest.CaptureFixture[str]
) -> None:
    apply(control_plane, namespace, NIGHTLY)
    ready = [condition("Ready", "done")]
    thread = operator(
        control_plane, namespace, "lkbk", {"nightly"}, conditions=ready, result=RESULT
    )
    assert run("backup", "orders") == 0
    thread.join()
    (name,) = set(found(control_plane, namespace, "lkbk")) - {"nightly"}
    assert capsys.readouterr().out == f"{name}: {RESULT['place']}, 12 pending\n"
    made = found(control_plane, namespace, "lkbk")[name]
    assert made["spec"]["target"] == {"claim": {"name": "backups", "path": "nightly"}}
    assert made["spec"]["keep"] == 3
    assert made["metadata"]["labels"] == {"lockkeeper.dev/class": "blue"}


def test_a_backup_goes_there_again_and_again(
    run: Run, control_plane: ControlPlane, namespace: str
) -> None:
    apply(control_plane, namespace, NIGHTLY)
    known = {"nightly"}
    for _ in range(2):
        ready = [condition("Ready", "done")]
        thread = operator(control_plane, namespace, "lkbk", known, conditions=ready, result=RESULT)
        assert run("backup", "orders") == 0
        thread.join()
        there = found(control_plane, namespace, "lkbk")
        (name,) = set(there) - known
        assert there[name]["spec"]["target"] == {"claim": {"name": "backups", "path": "nightly"}}
        known = set(there)


def test_a_backup_that_fails_ends_with_the_last_lines_of_its_job(
    run: Run, control_plane: ControlPlane, namespace: str, capsys: pytest.CaptureFixture[str]
) -> None:
    stalled = [condition("Stalled", "Job x: no room")]
    thread = operator(control_plane, namespace, "lkbk", set(), conditions=stalled)
    assert run("backup", "orders", "--claim", "mine") == 1
    thread.join()
    assert "Job x: no room" in capsys.readouterr().err
    (made,) = found(control_plane, namespace, "lkbk").values()
    assert made["spec"]["target"] == {"claim": {"name": "mine"}}


def test_without_a_target_a_backup_says_what_is_missing(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("backup", "orders") == 2
    assert "say --claim NAME or --url URL" in capsys.readouterr().err
    assert run("backup", "orders", "--url", "s3://bucket/x") == 2
    assert "target.url needs image.name" in capsys.readouterr().err


def test_a_restored_broker_has_the_spec_of_the_one_that_was_backed_up(
    run: Run, control_plane: ControlPlane, namespace: str, capsys: pytest.CaptureFixture[str]
) -> None:
    apply(control_plane, namespace, NIGHTLY)
    serves = {"conditions": [condition("Ready", "serves")], "master": "again-0"}
    thread = operator(control_plane, namespace, "brokers", {"orders"}, **serves)
    until = "2027-03-01T02:00:00Z"
    assert run("restore", "nightly", "again", "--until", until) == 0
    thread.join()
    assert capsys.readouterr().out == "again: again-0 serves clients\n"
    spec = found(control_plane, namespace, "brokers")["again"]["spec"]
    assert spec["bootstrap"] == {"backup": "nightly", "until": until}
    assert spec["replicas"] == 2
    assert "existingClaim" not in spec["storage"]
    # It is another's: it serves, and takes no address of the first one.
    assert (spec.get("hibernated"), spec.get("paused")) == (False, False)
    (listener,) = spec["listeners"]
    assert "route" not in listener and not listener.get("advertisedUrls")
    service = listener["service"]
    assert "nodePort" not in service
    assert service["type"] == "NodePort"
    assert service["annotations"] == {"example.com/internal": "true"}


def test_a_restore_without_the_original_broker_names_the_field(
    run: Run, control_plane: ControlPlane, namespace: str, capsys: pytest.CaptureFixture[str]
) -> None:
    orphan = {**NIGHTLY, "spec": {**NIGHTLY["spec"], "broker": "gone"}}
    apply(control_plane, namespace, orphan)
    assert run("restore", "nightly", "again") == 1
    said = capsys.readouterr().err
    assert "Broker gone is gone" in said
    assert 'apply a Broker with spec.bootstrap {"backup": "nightly"}' in said
