"""What the crash tests share: brokers with small journal files, and where their helpers are."""

import os
import random
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "interop")]

import brokers  # noqa: E402
from ports import free_port  # noqa: E402

SEED_VARIABLE = "LOCKKEEPER_CRASH_SEED"
BROKER = """
apiVersion: lockkeeper.dev/v1alpha1
kind: Broker
metadata: {{name: mortal}}
spec:
  listeners: [{{name: openwire, port: {port}}}]
  admin: {{port: 0}}
  journal: {{fileBytes: {file_bytes}, cleanupInterval: 100ms, recorder: {recorder}}}
  locker: {{acquireInterval: 100ms, keepAlivePeriod: 100ms}}
  systemUsage: {usage}
"""
StartBroker = Callable[..., brokers.RunningBroker]


@pytest.fixture
def seed() -> str:
    """A seed for everything random, printed so that a failure can be tried again."""
    chosen = os.environ.get(SEED_VARIABLE) or str(random.SystemRandom().randrange(10**6))
    print(f"{SEED_VARIABLE}={chosen}")
    return chosen


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """A directory in memory, where there is one, for what is not about what a disk forgets."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else tmp_path) as name:
        yield Path(name)


@pytest.fixture
def start_broker(tmp_path: Path) -> Iterator[StartBroker]:
    """A function that starts a broker process with a small journal; all end with the test."""
    started: list[brokers.RunningBroker] = []

    def start(
        directory: Path | None = None,
        port: int = 0,
        file_bytes: str = "64Ki",
        waits: bool = True,
        usage: str = "{}",
        recorder: str = "{}",
    ) -> brokers.RunningBroker:
        home = tmp_path / f"broker-{len(started)}"
        home.mkdir()
        port = port or free_port()
        resource = home / "broker.yaml"
        resource.write_text(
            BROKER.format(port=port, file_bytes=file_bytes, usage=usage, recorder=recorder)
        )
        data = str(directory or tmp_path / "data")
        command = [*brokers.LOCKKEEPER, "broker", "-f", str(resource), "--data", data]
        broker = brokers.RunningBroker("lockkeeper", port, home, command, waits)
        started.append(broker)
        return broker

    yield start
    for broker in started:
        broker.kill()
