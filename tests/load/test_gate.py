"""The gate finds a tenth more work, or allocations; `make gate` passes without them."""

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
ALLOCATING = f"        ({'object(), ' * 5})\n"

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


def complaint(place: Path, planted: str, words: str) -> list[str]:
    """Return the words of the one complaint that has *words* in it, after *planted* was added."""
    done = gate(place, planted)
    if "No limits are known" in done.stdout:
        pytest.skip("no limits are known for this Python")
    assert done.returncode == 1, done.stdout + done.stderr
    (found,) = [line for line in done.stdout.splitlines() if words in line]
    return found.split()


def test_a_tenth_more_work_is_found(tmp_path: Path) -> None:
    _, ratio, *_ = complaint(tmp_path, SLOWER, "times the work")
    assert 1.05 < float(ratio) < 1.15


def test_a_tenth_more_allocations_are_found(tmp_path: Path) -> None:
    words = complaint(tmp_path, ALLOCATING, "allocations instead of")
    assert 4.5 < float(words[1]) - float(words[-1]) < 5.5
