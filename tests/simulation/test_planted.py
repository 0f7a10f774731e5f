"""Planted bugs that the first seeds find: the simulation can fail."""

import subprocess
import sys
from pathlib import Path

import pytest

RUN = Path(__file__).with_name("planted.py")
PATCHES = sorted(RUN.with_name("planted").rglob("*.patch"))
PROJECT = Path(__file__).parents[2]


@pytest.mark.parametrize("path", PATCHES, ids=lambda path: path.stem)
def test_a_bug_can_be_planted(path: Path) -> None:
    command = ["patch", "-p1", "--dry-run", "--force", f"--input={path}"]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.slow
@pytest.mark.patient
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("collects-files-with-acknowledgements", "accounts differ from the journal"),
        ("copies-to-the-first-of-two", "is lost"),
        ("follows-no-topics-to-come", "did not get"),
        ("forgets-who-has-room-again", "waits for more than"),
        ("leaves-bytes-behind-a-large-frame", "waits for more than"),
        ("sends-nothing-back", "are stranded"),
        ("feeds-again-after-a-take-over", "again, or others"),
        ("shows-what-is-not-durable", "the queue that"),
    ],
)
def test_a_planted_bug_is_found(name: str, says: str) -> None:
    command = [sys.executable, str(RUN), name, "--seeds", "20"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    assert f"{name}: seed " in done.stdout
    assert says in done.stdout
