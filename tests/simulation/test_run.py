"""What a run leaves behind."""

import os
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
