"""`kubectl lockkeeper top`: rates of a real broker, reached as through kubectl."""

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from cli_support import CommandLine, Place

from lockkeeper.cli.cluster.main import main
from lockkeeper.cli.cluster.top import Sample, listing, rates

PROGRAM = Path(__file__).with_name("played_kubectl.py")


@pytest.fixture(autouse=True)
def cluster(broker: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Broker whose only pod is the module's broker."""
    ports = [{"name": "admin", "containerPort": 8161}]
    pod = {
        "metadata": {"name": "orders-0", "labels": {"lockkeeper.dev/role": "master"}},
        "spec": {"containers": [{"name": "broker", "ports": ports}]},
    }
    admin = int(broker.admin.rpartition(":")[2])
    state = {"broker": {"metadata": {}}, "pods": [pod], "ports": {"orders-0": admin}}
    path = tmp_path / "state.json"
    path.write_text(json.dumps(state), "utf-8")
    monkeypatch.setenv("KUBECTL", f"{sys.executable} {PROGRAM} {path}")
    return path


@contextmanager
def running() -> Iterator[Iterator[dict[str, Any]]]:
    """Give what `top` prints while it runs, look by look."""
    command = [sys.executable, "-m", "lockkeeper.cli.cluster.main", "top", "orders", "--json"]
    with subprocess.Popen(
        [*command, "--interval", "0.5"], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        yield (json.loads(line) for line in process.stdout)
        process.terminate()


def test_rates_of_a_real_broker(lockkeeper: CommandLine) -> None:
    lockkeeper.done("send", "RATES", "one")
    with running() as looks:
        (before,) = [each for each in next(looks)["destinations"] if each["name"] == "RATES"]
        assert (before["inPerSecond"], before["depth"]) == (0.0, 1)
        lockkeeper.done("send", "RATES", "two")
        for look in looks:
            (found,) = [each for each in look["destinations"] if each["name"] == "RATES"]
            if found["inPerSecond"]:
                break
    assert found["inPerSecond"] == pytest.approx(1 / look["seconds"], abs=0.1)
    assert (found["outPerSecond"], found["depth"], found["consumers"]) == (0.0, 2, 0)
    assert found["memoryBytes"] > 0
    assert look["memory"]["limit"] > look["memory"]["used"] > 0


def test_people_get_a_table(lockkeeper: CommandLine, capsys: pytest.CaptureFixture[str]) -> None:
    lockkeeper.done("send", "TABLE", "one")
    assert main(["top", "orders", "--once", "--interval", "0.5", "--lines", "1"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("orders  ")
    assert "is the master" in shown
    assert "Destination  In/s  Out/s  Depth  Consumers" in shown


class OldMaster(BaseHTTPRequestHandler):
    """Answers as a broker without destinations does."""

    def do_GET(self) -> None:
        memory = {"used": 0, "limit": 1}
        status = {"replica": "old", "role": "master", "since": 1, "connections": 0}
        answer = {"destinations": []} if "destinations" in self.path else status
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps({**answer, "memory": memory}).encode())

    def log_message(self, *_: Any) -> None:
        pass


def test_it_goes_on_with_the_next_master(cluster: Path, lockkeeper: CommandLine) -> None:
    state = json.loads(cluster.read_text("utf-8"))
    with ThreadingHTTPServer(("127.0.0.1", 0), OldMaster) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        ports = {"orders-0": server.server_port}
        cluster.write_text(json.dumps({**state, "ports": ports}), "utf-8")
        with running() as looks:
            assert next(looks)["master"] == "old"
            cluster.write_text(json.dumps(state), "utf-8")
            server.shutdown()
            server.server_close()
            after = next(each for each in looks if each.get("master", "old") != "old")
            assert after["seconds"] is None, "it has counted from the start of its own term"
            assert next(looks)["seconds"] >= 0.5


def test_without_a_master_it_says_so(cluster: Path, capsys: pytest.CaptureFixture[str]) -> None:
    state = json.loads(cluster.read_text("utf-8"))
    cluster.write_text(json.dumps({**state, "pods": []}), "utf-8")
    assert main(["top", "orders", "--once"]) == 1
    assert "orders has no master" in capsys.readouterr().err


def sample(moment: float, since: float = 1.0, **counts: tuple[int, int]) -> Sample:
    status = {
        "replica": "orders-0", "since": since, "connections": 3,
        "memory": {"used": 0, "limit": 1024},
    }  # fmt: skip
    found: list[dict[str, Any]] = [
        {
            "name": name, "kind": "Queue", "temporary": False, "depth": 7, "consumers": 1,
            "memoryBytes": 0, "enqueued": enqueued, "dequeued": dequeued,
        }
        for name, (enqueued, dequeued) in counts.items()
    ]  # fmt: skip
    return Sample(moment, status, found)


def speeds(now: Sample, before: Sample | None) -> dict[str, tuple[float | None, float | None]]:
    found = rates(now, before)
    return {each["name"]: (each["inPerSecond"], each["outPerSecond"]) for each in found}


def test_rates_are_what_was_counted_by_the_time_that_passed() -> None:
    before = sample(10.0, A=(100, 50), B=(9, 9))
    now = sample(12.0, A=(300, 51), B=(4, 0), C=(6, 0))
    assert speeds(now, before) == {
        "A": (100.0, 0.5),
        "B": (2.0, 0.0),  # It was deleted, and came again.
        "C": (3.0, 0.0),
    }
    assert speeds(now, None)["A"] == (None, None)


def test_the_busiest_come_first_and_the_others_are_counted() -> None:
    before = sample(1.0, A=(0, 0), B=(0, 0), C=(0, 0))
    found = listing("orders", sample(2.0, A=(1, 0), B=(9, 0), C=(0, 5)), before, 2)
    assert [row[0] for row in found.rows] == ["B", "C"]
    assert found.below == ("and 1 destination more",)
    assert found.above == ("orders  orders-0 is the master, 3 clients, memory 0 bytes of 1 KiB",)


def test_figures_of_another_term_make_no_rates() -> None:
    assert sample(1.0).counted_by != sample(2.0, since=1.5).counted_by
    (row,) = listing("orders", sample(2.0, A=(1, 0)), None, 5).rows
    assert row[1:3] == ["-", "-"]
