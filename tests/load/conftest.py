"""What the load tests share: brokers that end with the test."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "interop")]

from loaded import Loaded  # noqa: E402


@pytest.fixture
def start_loaded(tmp_path: Path) -> Iterator[Callable[..., Loaded]]:
    """A function that starts a broker with 64 MiB for messages; it ends with the test."""
    started: list[Loaded] = []

    def start(temp: str = "1Gi", start_seconds_max: float = 40) -> Loaded:
        started.append(Loaded(tmp_path, temp, start_seconds_max))
        return started[-1]

    yield start
    for loaded in started:
        loaded.end()
