"""The gate finds a broker that has become slower by a tenth; `make gate` passes without that."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).parents[2]
GATE = TOP / "bench" / "gate.py"
MADE = "        self.body = body\n"
SLOWER = "        for _ in range(22):\n            pass\n"

pytestmark = [
    pytest.mark.patient,
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("valgrind") is None, reason="valgrind is not installed"),
]


def gate(place: Path, *planted: str) -> "subprocess.CompletedProcess[str]":
    """Run the gate on a copy of the broker that makes messages as *planted* says."""
    shutil.copytree(TOP / "broker_image" / "lockkeeper", place / "lockkeeper")
    message = place / "lockkeeper" / "message" / "message.py"
    text = message.read_text()
    assert text.count(MADE) == 1
    message.write_text(text.replace(MADE, "".join(planted) + MADE))
    command = [sys.executable, str(GATE), "volatile"]
    environment = {**os.environ, "PYTHONPATH": str(place)}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_a_tenth_more_work_is_found(tmp_path: Path) -> None:
    done = gate(tmp_path, SLOWER)
    if "No limits are known" in done.stdout:
        pytest.skip("no limits are known for this Python")
    assert done.returncode == 1, done.stdout + done.stderr
    (complaint,) = [line for line in done.stdout.splitlines() if "times the work" in line]
    ratio = float(complaint.split()[1])
    assert 1.05 < ratio < 1.15, complaint
