"""One small Spark session for all tests that need one."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lockkeeper_analytics.spark.session import start_session, suited

sys.path.insert(0, str(Path(__file__).parent))

GOLDEN = Path(__file__).parents[1] / "golden" / "kahadb"


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    session = start_session("local[2]", scratch=tmp_path_factory.mktemp("spark"))
    yield suited(session, 0)
    session.stop()


@pytest.fixture
def golden() -> Path:
    """Return where the directories written by ActiveMQ are."""
    return GOLDEN
