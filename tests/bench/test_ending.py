"""A bench that is told to stop leaves no broker behind."""

import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from others import HERE

pytestmark = [pytest.mark.slow, pytest.mark.patient]


def test_brokers_end_with_a_bench_that_is_terminated(tmp_path: Path) -> None:
    command = [sys.executable, str(HERE / "aims.py"), "queues", "--directory", str(tmp_path)]
    bench = psutil.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not (brokers := bench.children()) or not [*tmp_path.rglob("db-1.log")]:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    bench.terminate()
    _, errors = bench.communicate(timeout=60)
    assert bench.returncode == 128 + 15, errors
    assert psutil.wait_procs(brokers, 20)[1] == []
    assert [*tmp_path.iterdir()] == []
