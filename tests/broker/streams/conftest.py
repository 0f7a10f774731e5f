"""The helpers of the tests of streams are beside them."""

import sys
from pathlib import Path

import pytest

sys.path[:0] = [str(Path(__file__).parent)]

from streams_kit import Bench, DiskBench  # noqa: E402

from lockkeeper.store.memory import MemoryStore  # noqa: E402


@pytest.fixture
def bench() -> Bench:
    return Bench(MemoryStore())


@pytest.fixture
def disk_bench(tmp_path: Path) -> DiskBench:
    return DiskBench(tmp_path)


@pytest.fixture(params=["memory", "disk"])
def any_bench(request: pytest.FixtureRequest, tmp_path: Path) -> Bench:
    return Bench(MemoryStore()) if request.param == "memory" else DiskBench(tmp_path)
