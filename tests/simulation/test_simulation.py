"""Seeds of the simulation: a pair, networks and streams on virtual time, with all faults."""

import subprocess
import sys
from pathlib import Path

import pytest

RUN = Path(__file__).with_name("run.py")
WORLDS = [
    pytest.param("", 20, id="pair"),
    pytest.param("--networks", 8, id="networks"),
    pytest.param("--streams", 4, id="streams"),
]

pytestmark = [pytest.mark.slow, pytest.mark.patient]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(RUN), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.timeout(1800)
@pytest.mark.parametrize(("world", "seeds"), WORLDS)
def test_no_seed_finds_anything(world: str, seeds: int) -> None:
    """What fails here fails again with `tests/simulation/run.py [WORLD] --replay SEED`."""
    done = run(*world.split(), "--seeds", f"0-{seeds - 1}")
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    assert done.stdout.startswith(f"{seeds} seeds passed, 0 failed: ")


def test_a_seed_is_the_same_each_time() -> None:
    digests = [run("--seeds", "7-9", "--traces").stdout.splitlines()[:3] for _ in range(2)]
    assert len(digests[0]) == 3
    assert digests[0] == digests[1]
