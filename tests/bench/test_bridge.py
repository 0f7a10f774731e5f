"""The measurement of a bridge, at real brokers: what is told was measured."""

import subprocess
import sys
from pathlib import Path

import others
import pytest

pytestmark = [pytest.mark.interop, pytest.mark.slow]

BENCH = Path(__file__).parents[2] / "bench" / "bridge.py"


def test_each_message_comes_over_each_bridge() -> None:
    if reason := others.brokers.missing("activemq"):
        pytest.skip(reason)
    # More than a window: ActiveMQ sends no more where it is acknowledged by wrong ids.
    command = [sys.executable, str(BENCH), "--messages", "1500"]
    run = subprocess.run(
        [*command, "--rounds", "1", "--pairs", "ours-activemq", "activemq-ours"],
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    rows = [line.split(" | ") for line in run.stdout.splitlines()[2:]]
    assert [row[0] for row in rows] == ["| ours-activemq", "| activemq-ours"]
    assert all(float(row[1].replace(",", "")) > 0 for row in rows)
