"""What the client's tests share: running brokers, a connection, a queue of one's own."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "interop"))
sys.path.insert(0, str(Path(__file__).parent))

import brokers
from awaiting import EventLoopThread
from client_support import KINDS, Connect, start_broker

from lockkeeper.client import Connection, RedeliveryPolicy, aio, connect

AT_ONCE = RedeliveryPolicy(initial_redelivery_delay=0, redelivery_delay=0)


def running_broker(kind: str, directory: Path) -> Iterator[brokers.RunningBroker]:
    reason = brokers.missing(kind)
    if reason:
        pytest.skip(reason)
    running = start_broker(kind, directory)
    yield running
    if running.process.poll() is None:
        running.stop()


@pytest.fixture(scope="session", params=KINDS)
def broker(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[brokers.RunningBroker]:
    """A running broker that no test disturbs."""
    yield from running_broker(request.param, tmp_path_factory.mktemp(request.param))


@pytest.fixture(params=KINDS)
def mortal_broker(
    request: pytest.FixtureRequest, tmp_path: Path
) -> Iterator[brokers.RunningBroker]:
    """A running broker that a test may kill and start again."""
    yield from running_broker(request.param, tmp_path)


@pytest.fixture
def our_mortal_broker(tmp_path: Path) -> Iterator[brokers.RunningBroker]:
    """A running Lockkeeper that a test may kill and start again."""
    yield from running_broker("lockkeeper", tmp_path)


@pytest.fixture(params=["blocking", "asyncio"])
def face(request: pytest.FixtureRequest) -> Iterator[Callable[..., Connection]]:
    """A function like `connect`, of one of the faces; that of asyncio awaits by itself."""
    if request.param == "blocking":
        yield connect
        return
    with EventLoopThread() as thread:
        yield thread.wrapped(aio.connect)


@pytest.fixture
def open_connection(face: Callable[..., Connection]) -> Iterator[Connect]:
    """A function like `connect`, without delays of redelivery; what it opens is closed."""
    opened: list[Connection] = []

    def open_one(*arguments: Any, **options: Any) -> Connection:
        options.setdefault("redelivery", AT_ONCE)
        connection = face(*arguments, **options)
        opened.append(connection)
        return connection

    yield open_one
    for connection in opened:
        connection.close()


@pytest.fixture
def connection(broker: brokers.RunningBroker, open_connection: Connect) -> Connection:
    return open_connection(broker.url)


@pytest.fixture
def queue_name(request: pytest.FixtureRequest) -> str:
    """A queue that no other test uses."""
    return "TEST." + "".join(c if c.isalnum() else "." for c in request.node.name).upper()
