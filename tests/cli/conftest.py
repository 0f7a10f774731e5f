"""A real broker for every module, and the command line pointed at it."""

import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "broker" / "streams")]

from cli_support import (  # noqa: E402
    CommandLine,
    Place,
    role_at,
    run_broker,
    stop,
    wait_until,
)
from ports import free_ports  # noqa: E402


@pytest.fixture(scope="session", autouse=True)
def _children_hear_control_c() -> None:
    """Undo that a shell lets what it runs in the background ignore SIGINT: children would, too."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    port, admin_port = free_ports(2)
    data = tmp_path_factory.mktemp("broker") / "data"
    admin = f"127.0.0.1:{admin_port}"
    process = run_broker(data, f"openwire://127.0.0.1:{port}", admin)
    wait_until(lambda: role_at(f"http://{admin}") == "master", process)
    yield Place(f"tcp://127.0.0.1:{port}", f"http://{admin}", data)
    stop(process)


@pytest.fixture
def lockkeeper(
    broker: Place, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> CommandLine:
    """The command line, whose commands find the module's broker by the environment."""
    monkeypatch.setenv("LOCKKEEPER_URL", broker.url)
    monkeypatch.setenv("LOCKKEEPER_ADMIN", broker.admin)
    return CommandLine(capsys, monkeypatch)


@pytest.fixture
def queue(request: pytest.FixtureRequest) -> str:
    """A queue that no other test uses."""
    return "".join(c if c.isalnum() else "." for c in request.node.name).upper()
