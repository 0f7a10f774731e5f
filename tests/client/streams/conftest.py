"""What the tests of streams share: a running broker, and streams of one's own."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "interop" / "rocketmq"))
sys.path.insert(0, str(Path(__file__).parent))

import reference
from brokers import RunningBroker


@pytest.fixture(scope="session")
def stream_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    """A running broker whose delays are short, and that no test disturbs."""
    running = reference.start_lockkeeper(tmp_path_factory.mktemp("streams"))
    yield running
    running.stop()


@pytest.fixture
def mortal_stream_broker(tmp_path: Path) -> Iterator[RunningBroker]:
    """A running broker that a test may kill and start again."""
    running = reference.start_lockkeeper(tmp_path)
    yield running
    running.kill()


@pytest.fixture
def names(stream_broker: RunningBroker) -> str:
    """The address of the name server."""
    return f"127.0.0.1:{stream_broker.port}"


@pytest.fixture
def stream(request: pytest.FixtureRequest) -> str:
    """A stream that no other test uses."""
    return "S-" + "".join(c if c.isalnum() else "-" for c in request.node.name)
