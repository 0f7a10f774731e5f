"""A backlog of a million messages stays on disk."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("backlog_program.py")
MESSAGES = 1_000_000
RESIDENT_BYTES_MAX = 500_000_000
UNTRACED = {name: value for name, value in os.environ.items() if not name.startswith("COV")}
"""Coverage of a million messages weighs something, too, and takes minutes."""


def run(directory: Path, count: int) -> dict[str, float]:
    done = subprocess.run(
        [sys.executable, str(PROGRAM), str(directory), str(count)],
        env=UNTRACED,
        capture_output=True,
        check=True,
        text=True,
    )
    figures: dict[str, float] = json.loads(done.stdout)
    return figures


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_million_messages_weigh_less_than_half_a_gigabyte(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    filled = run(tmp_path, MESSAGES)
    read = run(tmp_path, 0)
    with capsys.disabled():
        print(
            f"\na backlog of {MESSAGES:,} x 1 KB: {filled['resident'] / 1e6:.0f} MB resident, "
            f"{read['resident'] / 1e6:.0f} MB after a restart that read "
            f"{MESSAGES / read['recovery']:,.0f} records/s"
        )
    assert filled["depth"] == read["depth"] == MESSAGES
    assert filled["resident"] < RESIDENT_BYTES_MAX
    assert read["resident"] < RESIDENT_BYTES_MAX
