"""`lockkeeper up`: a real pair, killed, stopped, and refused what it cannot have."""

import json
import os
import re
import signal
import socket
import subprocess
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest
from cli_support import COMMAND, role_at, stop, wait_until
from ports import free_ports

RESOURCE = """\
apiVersion: lockkeeper.dev/v1alpha1
kind: Broker
metadata:
  name: pair
spec:
  replicas: 2
  listeners:
  - name: openwire
    port: {port}
  admin:
    port: {admin}
  locker:
    acquireInterval: 100ms
"""


@dataclass
class Pair:
    """A pair that may run."""

    directory: Path
    port: int
    admins: list[str]

    def start(self) -> "subprocess.Popen[str]":
        with (self.directory / "up.log").open("wb") as log:
            return subprocess.Popen(
                [COMMAND, "up", "-f", "broker.yaml", "--data", "data"],
                cwd=self.directory, stdout=log, stderr=subprocess.STDOUT, text=True,
            )  # fmt: skip

    @property
    def lines(self) -> list[str]:
        """What was printed, without the times."""
        text = (self.directory / "up.log").read_text()
        return [re.sub(r"^\d\d:\d\d:\d\d ", "", line) for line in text.splitlines()]

    def roles(self) -> list[str]:
        return [role_at(address) for address in self.admins]


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    port, *admins = free_ports(3)
    (tmp_path / "broker.yaml").write_text(RESOURCE.format(port=port, admin=admins[0]))
    return Pair(tmp_path, port, [f"http://127.0.0.1:{admin}" for admin in admins])


@pytest.fixture
def running(pair: Pair) -> Iterator["subprocess.Popen[str]"]:
    process = pair.start()
    wait_until(lambda: pair.roles() == ["master", "standby"], process)
    yield process
    stop(process)


def asked(admin: str, what: str) -> Any:
    with urllib.request.urlopen(f"{admin}/api/v1/{what}", timeout=5) as answer:
        return json.load(answer)


def process_at(admin: str) -> int:
    return int(asked(admin, "status")["pid"])


def depth_at(admin: str) -> int:
    """Return how many messages wait in the only queue."""
    return sum(int(view["depth"]) for view in asked(admin, "destinations")["destinations"])


def is_running(process: int) -> bool:
    """Tell whether a process runs; one that nobody has buried yet does not."""
    try:
        return psutil.Process(process).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_a_killed_master_is_replaced_and_comes_back_as_the_standby(
    pair: Pair, running: "subprocess.Popen[str]"
) -> None:
    first, second = pair.admins
    assert pair.lines[:4] == [
        "pair, 2 replicas; Ctrl-C stops",
        "  journal  data",
        f"  clients  failover:(tcp://127.0.0.1:{pair.port})",
        f"  admin    {first} {second}",
    ]
    assert "pair-0 is the master" in pair.lines
    with subprocess.Popen(
        [COMMAND, "send", "ORDERS", "x" * 500, "--count", "20000", "--json",
         "--url", f"failover:(tcp://127.0.0.1:{pair.port})"],
        stdout=subprocess.PIPE,
    ) as sending:  # fmt: skip
        wait_until(lambda: depth_at(first) > 2000, sending)
        os.kill(process_at(first), signal.SIGKILL)
        wait_until(lambda: pair.roles() == ["standby", "master"], running)
        assert sending.wait(60) == 0
        assert sending.stdout is not None
        summary = json.load(sending.stdout)
    assert summary["messages"] == 20_000
    assert 20_000 <= depth_at(second) <= 20_000 + summary["inDoubt"]
    said = pair.lines
    lost = "pair-0 was the master, was killed by signal 9; starting it again in 0.5 s"
    assert lost in said
    (took_over,) = [line for line in said if "master now" in line]
    assert re.fullmatch(r"pair-1 is the master now, after \d\.\d s", took_over)
    running.send_signal(signal.SIGINT)
    assert running.wait(20) == 0
    # The standby goes first, so nobody takes over from a master that is stopped on purpose.
    assert pair.lines[-3:] == ["pair-0 is stopped", "pair-1 is stopped", "stopped"]
    assert not any("\x1b" in line for line in pair.lines)


def test_replicas_do_not_outlive_whoever_started_them(
    pair: Pair, running: "subprocess.Popen[str]"
) -> None:
    processes = [process_at(admin) for admin in pair.admins]
    running.kill()
    running.wait()
    wait_until(lambda: not any(map(is_running, processes)))


@pytest.mark.parametrize("which", ["client port", "admin port of the standby"])
def test_a_port_in_use_ends_it_with_the_reason(pair: Pair, which: str) -> None:
    port = pair.port if which == "client port" else int(pair.admins[1].rsplit(":")[-1])
    what = "listener openwire" if which == "client port" else "admin endpoint"
    with socket.create_server(("127.0.0.1", port)):
        assert pair.start().wait(30) == 1
    refused = [line for line in pair.lines if "in use by another program" in line]
    assert f"{what}: 127.0.0.1:{port} is in use by another program; choose another" in refused[0]
    assert re.fullmatch(
        r"lockkeeper: pair-\d cannot run, see above; all are stopped", pair.lines[-1]
    )


def test_a_directory_of_something_else_is_left_alone(pair: Pair) -> None:
    data = pair.directory / "data"
    data.mkdir()
    (data / "photo.jpg").write_bytes(b"precious")
    assert pair.start().wait(30) == 1
    assert any("not a journal's directory, it holds other files" in line for line in pair.lines)
    assert [path.name for path in data.iterdir()] == ["photo.jpg"]


def test_a_wrong_resource_is_misuse_and_names_the_field(pair: Pair) -> None:
    path = pair.directory / "broker.yaml"
    path.write_text(path.read_text().replace("replicas:", "replica:"))
    assert pair.start().wait(30) == 2
    assert "spec.replica" in pair.lines[0]


def test_one_broker_says_why_it_cannot_listen(tmp_path: Path) -> None:
    done = subprocess.run(
        [COMMAND, "broker", "--data", str(tmp_path / "data"), "--admin", "127.0.0.1:0",
         "--listen", "openwire://host.invalid:4000"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "lockkeeper: listener openwire: cannot listen on host.invalid:4000" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_broker_serves_on_when_nobody_reads_its_log(tmp_path: Path) -> None:
    port, admin = free_ports(2)
    reading, writing = os.pipe()
    process = subprocess.Popen(
        [COMMAND, "broker", "--data", str(tmp_path / "data"), "--admin", f"127.0.0.1:{admin}",
         "--listen", f"openwire://127.0.0.1:{port}"],
        stderr=writing,
    )  # fmt: skip
    os.close(reading)
    os.close(writing)
    wait_until(lambda: role_at(f"http://127.0.0.1:{admin}") == "master", process)
    process.terminate()
    assert process.wait(20) == 0


def test_a_pair_whose_output_nobody_reads_is_stopped(pair: Pair) -> None:
    with subprocess.Popen(
        [COMMAND, "up", "-f", "broker.yaml", "--data", "data"],
        cwd=pair.directory, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        assert process.stdout is not None and process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.wait(30) == 1
        assert process.stderr.read() == b""
    assert pair.roles() == ["", ""]


def test_a_log_for_machines_is_json(tmp_path: Path) -> None:
    port, admin = free_ports(2)
    with subprocess.Popen(
        [COMMAND, "broker", "--data", str(tmp_path / "data"), "--log-format", "json",
         "--admin", f"127.0.0.1:{admin}", "--listen", f"openwire://127.0.0.1:{port}"],
        stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        wait_until(lambda: role_at(f"http://127.0.0.1:{admin}") == "master", process)
        process.terminate()
        assert process.wait(20) == 0
        assert process.stderr is not None
        lines = [json.loads(line) for line in process.stderr]
    assert [line["role"] for line in lines if "role" in line] == [
        "recovering", "master", "stopped",
    ]  # fmt: skip
    assert {line["level"] for line in lines} == {"info"}
