"""Seeds of the simulation: a pair, networks and streams on virtual time, with all faults."""

import subprocess
import sys
from pathlib import Path

import pytest

RUN = Path(__file__).with_name("run.py")
SEEDS = 20
NETWORKS = 8
STREAMS = 4

pytestmark = [pytest.mark.slow, pytest.mark.patient]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(RUN), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.timeout(1800)
def test_no_seed_finds_anything() -> None:
    """What fails here fails again with `tests/simulation/run.py --replay SEED`."""
    done = run("--seeds", f"0-{SEEDS - 1}")
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    assert done.stdout.startswith(f"{SEEDS} seeds passed, 0 failed: ")


@pytest.mark.timeout(1800)
def test_no_network_finds_anything() -> None:
    """What fails here fails again with `tests/simulation/run.py --networks --replay SEED`."""
    done = run("--networks", "--seeds", f"0-{NETWORKS - 1}")
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    assert done.stdout.startswith(f"{NETWORKS} seeds passed, 0 failed: ")


@pytest.mark.timeout(1800)
def test_no_stream_finds_anything() -> None:
    """What fails here fails again with `tests/simulation/run.py --streams --replay SEED`."""
    done = run("--streams", "--seeds", f"0-{STREAMS - 1}")
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    assert done.stdout.startswith(f"{STREAMS} seeds passed, 0 failed: ")


def test_a_seed_is_the_same_each_time() -> None:
    digests = [run("--seeds", "7-9", "--traces").stdout.splitlines()[:3] for _ in range(2)]
    assert len(digests[0]) == 3
    assert digests[0] == digests[1]
