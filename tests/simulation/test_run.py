"""What a run leaves behind, and how it ends."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

from simulation import run


def test_what_killed_runs_left_goes_with_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "MEMORY", tmp_path)
    process = os.fork()
    if not process:
        os._exit(0)
    os.waitpid(process, 0)
    (run._place_of(process) / "disk").mkdir(parents=True)
    mine, others = run._place_of(os.getpid()), tmp_path / "simulation-of-somebody"
    mine.mkdir()
    others.mkdir()
    run.clear_leftovers()
    assert sorted(tmp_path.iterdir()) == sorted([mine, others])


def test_a_run_that_cannot_load_what_it_runs_ends(tmp_path: Path) -> None:
    (tmp_path / "greenlet.py").write_text("raise ImportError('of another Python')")
    command = [sys.executable, run.__file__, "--seeds", "7-8"]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 1
    assert "ImportError: of another Python" in done.stderr
    assert done.stderr.endswith("has ended: it says why above.\n")
