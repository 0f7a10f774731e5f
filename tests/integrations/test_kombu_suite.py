"""kombu's own integration tests pass over Lockkeeper and over ActiveMQ."""

import os
import re
import subprocess
import sys
from pathlib import Path

import brokers
import pytest
from sources import source_of

SUITE = Path(__file__).with_name("kombu_suite.py")
APPLICABLE = 44
NOT_APPLICABLE = {
    # One call of drain_events is to hand three messages over; ours hands over one.
    "TestPriority and (test_publish_consume or test_publish_requeue_consume)",
    # kombu is to know the port of a URL that it leaves to the transport.
    "test_failover_switches_to_alternate_url",
}


@pytest.mark.slow
@pytest.mark.patient
@pytest.mark.timeout(1800)
def test_the_suite_passes(broker: brokers.RunningBroker, tmp_path: Path) -> None:
    source = source_of("kombu")
    environment = {
        **os.environ,
        "BROKER_URL": f"lockkeeper+openwire://127.0.0.1:{broker.port}",
        "PYTHONPATH": str(source),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    command = [sys.executable, "-m", "pytest", "-q", "-c", os.devnull, f"--rootdir={tmp_path}"]
    command += ["-p", "no:cacheprovider", "-p", "no:xdist", "--timeout=120", str(SUITE)]
    command += ["-k", " and ".join(f"not ({each})" for each in sorted(NOT_APPLICABLE))]
    ran = subprocess.run(
        command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=600,
        check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout[-5000:]
    passed = re.search(r"(\d+) passed", ran.stdout)
    assert passed is not None
    assert int(passed[1]) == APPLICABLE, ran.stdout[-2000:]
    assert "skipped" not in ran.stdout.splitlines()[-1]
