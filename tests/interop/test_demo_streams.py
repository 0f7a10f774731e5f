"""The demo of streams: three groups have every departure, in order, across a kill."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.crash, pytest.mark.thorough, pytest.mark.timeout(900)]
DEMO = Path(__file__).parents[2] / "demo" / "streams.py"


def test_no_group_misses_a_departure(tmp_path: Path) -> None:
    command = [sys.executable, str(DEMO), "--directory", str(tmp_path / "run")]
    done = subprocess.run(
        [*command, "--departures", "20000"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "has taken over" in done.stdout
    lines = done.stdout.splitlines()[-3:]
    assert all(re.match(r"(\w+) +had 20000 of 20000 departures, 0 missing", each) for each in lines)
    assert "the order of each partition was kept" in lines[0]
