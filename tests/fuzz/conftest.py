"""The fuzzer and its targets are beside the tests."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path[:0] = [str(Path(__file__).parent)]


@pytest.fixture(scope="session", autouse=True)
def place_for_files() -> Iterator[None]:
    """Where targets that read files write them."""
    from fuzzer import scratch

    with scratch():
        yield
