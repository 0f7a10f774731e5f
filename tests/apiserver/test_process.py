"""`lockkeeper-operator` as a process: how it begins, who leads, and how it ends."""

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from control_plane import ControlPlane
from ports import free_port
from simulated import in_loop

from lockkeeper_operator.kubernetes.api.kinds import LEASE
from lockkeeper_operator.kubernetes.api.server import connect

START_SECONDS = 40.0
STOP_SECONDS = 4.0
FOLLOW_SECONDS = 10.0


@contextmanager
def process(
    kubeconfig: Path, namespace: str, *options: str, **environment: str
) -> Iterator[subprocess.Popen[str]]:
    paths = os.pathsep.join(sys.path)
    around = {"PYTHONPATH": paths, "KUBECONFIG": str(kubeconfig)}
    started = subprocess.Popen(
        [sys.executable, "-m", "lockkeeper_operator", "--host", "127.0.0.1", *options],
        env={**os.environ, **around, "LOCKKEEPER_NAMESPACES": namespace, **environment},
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield started
    finally:
        started.kill()
        started.wait()


def replica(control_plane: ControlPlane, namespace: str, name: str, port: int) -> Any:
    options = ("--operator-namespace", namespace, "--identity", name, "--port", str(port))
    return process(control_plane.kubeconfig, namespace, *options)


def figure(port: int, name: str) -> float | None:
    """Return a figure of a replica, None while it does not answer."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=2) as answer:
            lines = answer.read().decode().splitlines()
    except (urllib.error.URLError, OSError):
        return None
    return next((float(line.split()[1]) for line in lines if line.startswith(f"{name} ")), None)


def until(holds: Any, seconds: float) -> float:
    begun = time.monotonic()
    while not holds():
        assert time.monotonic() < begun + seconds, f"not within {seconds} s"
        time.sleep(0.05)
    return time.monotonic() - begun


def leads(port: int) -> bool:
    return figure(port, "lockkeeper_operator_leads") == 1


def ready(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=2) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def ended(stopped: subprocess.Popen[str]) -> float:
    """Return how long a process took to end that was told to."""
    begun = time.monotonic()
    stopped.send_signal(signal.SIGTERM)
    assert stopped.wait(STOP_SECONDS) == 0, stopped.stderr and stopped.stderr.read()
    return time.monotonic() - begun


def test_one_leads_the_other_stands_by_and_each_ends_when_it_is_told_to(
    control_plane: ControlPlane, namespace: str
) -> None:
    ports = [free_port() for _ in range(3)]
    with replica(control_plane, namespace, "one", ports[0]) as one:
        until(lambda: leads(ports[0]) and ready(ports[0]), START_SECONDS)
        with replica(control_plane, namespace, "two", ports[1]) as two:
            until(lambda: ready(ports[1]), START_SECONDS)
            assert not leads(ports[1])
            print(f"a standby ended in {ended(two):.1f} s")
            assert leads(ports[0])
        with replica(control_plane, namespace, "three", ports[2]):
            until(lambda: ready(ports[2]), START_SECONDS)
            print(f"the leader ended in {ended(one):.1f} s")
            took = until(lambda: leads(ports[2]) and ready(ports[2]), FOLLOW_SECONDS)
            print(f"the next one works {took:.1f} s later")

            @in_loop
            async def holder_is_three() -> None:
                api = await connect(str(control_plane.kubeconfig))
                lease = await api.read(LEASE, namespace, "lockkeeper-operator")
                await api.close()
                assert lease["spec"]["holderIdentity"] == "three"

            holder_is_three()


def test_what_keeps_it_from_beginning_is_its_exit_code(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with replica(control_plane, namespace, "one", port) as one:
            assert one.wait(START_SECONDS) == 1
            assert one.stderr is not None
            assert "/healthz" in one.stderr.read()
    nowhere = {"KUBERNETES_SERVICE_HOST": ""}
    with process(tmp_path / "none", namespace, **nowhere) as lost:
        assert lost.wait(START_SECONDS) == 2
        assert lost.stderr is not None
        assert "no cluster" in lost.stderr.read()
