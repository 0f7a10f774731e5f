"""`kubectl lockkeeper promote BROKER POD`: that standby, if it is proven able, and no other."""

import json
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from played_kubectl import fenced_in

from lockkeeper.cli.cluster.main import main

PROGRAM = Path(__file__).with_name("played_kubectl.py")


def pod(number: int, role: str, ready: str = "True") -> dict[str, Any]:
    ports = [{"name": "admin", "containerPort": 8161}]
    return {
        "metadata": {"name": f"orders-{number}", "labels": {"lockkeeper.dev/role": role}},
        "spec": {"containers": [{"name": "broker", "ports": ports}]},
        "status": {"conditions": [{"type": "Ready", "status": ready}]},
    }


class Cluster:
    """A Broker with three replicas whose brokers answer, and do what the fence says."""

    def __init__(self, path: Path) -> None:
        self._path, self.unproven, self.deaf = path, set[str](), set[str]()
        self._servers = [self._server(f"orders-{number}") for number in range(3)]
        self.ports = {f"orders-{n}": each.server_port for n, each in enumerate(self._servers)}
        pods = [pod(0, "master"), pod(1, "standby"), pod(2, "standby")]
        self.write({"broker": {"metadata": {}}, "pods": pods, "ports": self.ports})

    def read(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self._path.read_text("utf-8"))
        return found

    def write(self, state: dict[str, Any]) -> None:
        self._path.write_text(json.dumps(state), "utf-8")

    def status(self, name: str) -> dict[str, Any]:
        fenced = name in fenced_in(self.read()) and name not in self.deaf
        role = "fenced" if fenced else "standby"
        return {"role": role, "takesOver": not fenced and name not in self.unproven}

    def close(self) -> None:
        for server in self._servers:
            server.shutdown()
            server.server_close()

    def _server(self, name: str) -> ThreadingHTTPServer:
        cluster = self

        class Answers(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = json.dumps(cluster.status(name)).encode()
                self.send_response(200)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return server


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    path = tmp_path / "state.json"
    monkeypatch.setenv("KUBECTL", f"{sys.executable} {PROGRAM} {path}")
    found = Cluster(path)
    yield found
    found.close()


def test_the_named_standby_takes_over_though_another_would_be_faster(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["promote", "orders", "orders-1"]) == 0
    said = capsys.readouterr().err
    for line in (
        "orders-2: fenced meanwhile",
        "orders-0 is stopping; orders-1 takes over",
        "orders-1 is the master, after",
    ):
        assert line in said
    state = cluster.read()
    assert state["deleted"] == ["orders-0"]
    assert state["fences"] == ["orders-2", None], "the fence is gone again"


def test_what_a_person_has_fenced_stays_fenced(cluster: Cluster) -> None:
    state = cluster.read()
    state["broker"]["metadata"]["annotations"] = {"lockkeeper.dev/fenced": "orders-2"}
    cluster.write(state)
    assert main(["promote", "orders", "orders-1"]) == 0
    assert "fences" not in cluster.read()
    assert fenced_in(cluster.read()) == ["orders-2"]


def _unready(cluster: Cluster) -> None:
    state = cluster.read()
    state["pods"][1] = pod(1, "standby", ready="False")
    cluster.write(state)


def _terminating(cluster: Cluster) -> None:
    state = cluster.read()
    state["pods"][1]["metadata"]["deletionTimestamp"] = "2027-01-15T12:00:00Z"
    cluster.write(state)


def _silent(cluster: Cluster) -> None:
    state = cluster.read()
    del state["ports"]["orders-1"]
    cluster.write(state)


def _fenced(cluster: Cluster) -> None:
    state = cluster.read()
    state["broker"]["metadata"]["annotations"] = {"lockkeeper.dev/fenced": "orders-1"}
    cluster.write(state)


@pytest.mark.parametrize(
    ("arrange", "reason"),
    [
        (lambda cluster: cluster.unproven.add("orders-1"), "has not yet found the journal's lock"),
        (_unready, "it is not ready"),
        (_terminating, "it is being deleted"),
        (_silent, "it does not answer"),
        (_fenced, "it is fenced"),
    ],
)
def test_one_that_is_not_proven_is_refused_and_nothing_is_done(
    cluster: Cluster,
    capsys: pytest.CaptureFixture[str],
    arrange: Callable[[Cluster], None],
    reason: str,
) -> None:
    arrange(cluster)
    assert main(["promote", "orders", "orders-1"]) == 1
    said = capsys.readouterr().err
    assert "orders-1 is not proven able to take over" in said
    assert reason in said
    assert "deleted" not in cluster.read()


def test_without_an_operator_that_fences_nothing_is_done(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.deaf.add("orders-2")
    assert main(["promote", "orders", "orders-1", "--timeout", "1"]) == 1
    assert "orders-2 was not fenced within 1 s, so that nothing was done" in capsys.readouterr().err
    state = cluster.read()
    assert "deleted" not in state
    assert state["fences"] == ["orders-2", None]
