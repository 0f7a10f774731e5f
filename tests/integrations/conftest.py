"""What the tests of integrations share: running brokers with queues by priority, and their URL."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "interop")]

import brokers  # noqa: E402
from ports import free_port  # noqa: E402

START_SECONDS_MAX = 300.0
"""A machine that does much else at the same time is no finding."""
KINDS = ["lockkeeper", pytest.param("activemq", marks=pytest.mark.interop)]


def running(kind: str, directory: Path, configuration: str) -> Iterator[brokers.RunningBroker]:
    reason = brokers.missing(kind)
    if reason:
        pytest.skip(reason)
    port = free_port()
    command = brokers.COMMANDS[kind](directory, port, configuration=configuration)
    started = brokers.RunningBroker(
        kind, port, directory, command, start_seconds_max=START_SECONDS_MAX
    )
    yield started
    if started.process.poll() is None:
        started.stop()


@pytest.fixture(scope="session", params=KINDS)
def broker(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[brokers.RunningBroker]:
    """A running broker that no test disturbs."""
    yield from running(request.param, tmp_path_factory.mktemp(request.param), "tasks")


@pytest.fixture(params=KINDS)
def mortal_broker(
    request: pytest.FixtureRequest, tmp_path: Path
) -> Iterator[brokers.RunningBroker]:
    """A running broker that a test may kill and start again."""
    yield from running(request.param, tmp_path / "broker", "tasks")


@pytest.fixture(params=KINDS)
def scheduling_broker(
    request: pytest.FixtureRequest, tmp_path: Path
) -> Iterator[brokers.RunningBroker]:
    """A running broker with its scheduler."""
    yield from running(request.param, tmp_path / "broker", "time")
