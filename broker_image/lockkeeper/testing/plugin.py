"""The pytest plugin: fixtures with a broker for each test (docs/testing.md).

pytest imports this module in every run of everybody who has it installed, so it imports nothing of
ours before a test asks for a fixture.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from lockkeeper.testing.in_process import InProcessBroker
    from lockkeeper.testing.process import ProcessBroker

MARKER = "lockkeeper"
OPTION = "--lockkeeper-process"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that makes every broker a process."""
    parser.getgroup(MARKER).addoption(
        OPTION,
        action="store_true",
        help="run the brokers of lockkeeper_broker as processes; tests that need virtual time, "
        "cuts or a full disk are skipped",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker."""
    config.addinivalue_line(
        "markers", f"{MARKER}(process=True): run the broker of this test as a process"
    )


@pytest.fixture
def lockkeeper_configuration() -> Path | None:
    """YAML file with the Broker and its Destinations; override this fixture to give one.

    None is a Broker with every default, and its scheduler on.
    """
    return None


@pytest.fixture
def lockkeeper_broker(
    request: pytest.FixtureRequest, lockkeeper_configuration: Path | None
) -> Iterator["InProcessBroker | ProcessBroker"]:
    """A broker of this test alone, which has started; clients connect to its `url`."""
    with _broker(request, lockkeeper_configuration) as broker:
        yield broker


def _broker(request: pytest.FixtureRequest, file: Path | None) -> "InProcessBroker | ProcessBroker":
    """Return a broker as the test, or the option, wants it."""
    marker = request.node.get_closest_marker(MARKER)
    is_process = marker is not None and marker.kwargs.get("process", False)
    if is_process or request.config.getoption(OPTION):
        from lockkeeper.testing.process import ProcessBroker

        return ProcessBroker(request.getfixturevalue("tmp_path") / "lockkeeper", file)
    from lockkeeper.testing.in_process import InProcessBroker

    return InProcessBroker(file)
