"""One small Spark session for all tests that need one, and the reports of either engine."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lockkeeper_analytics import __main__, job
from lockkeeper_analytics.reports.report import Row
from lockkeeper_analytics.spark.session import start_session, suited

sys.path.insert(0, str(Path(__file__).parent))

from journal_frames import journal_in
from journal_reports import asked

GOLDEN = Path(__file__).parents[1] / "golden" / "kahadb"

Reporter = Callable[..., list[Row]]
Command = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    session = start_session("local[2]", scratch=tmp_path_factory.mktemp("spark"))
    yield suited(session, 0)
    session.stop()


@pytest.fixture
def golden() -> Path:
    """Return where the directories written by ActiveMQ are."""
    return GOLDEN


# A report is one text for both engines, and test_report_sql.py holds their answers against each
# other: DuckDB gives them in a fraction of a second.
@pytest.fixture(
    params=[
        "duckdb",
        pytest.param("spark", marks=[pytest.mark.spark, pytest.mark.slow, pytest.mark.thorough]),
    ]
)
def report(request: pytest.FixtureRequest) -> Reporter:
    """Return what tells the rows of a report, by its name, of directories, by their paths."""
    if request.param == "duckdb":
        return lambda name, *directories: asked(f"FROM {name}_report", *directories)
    spark = request.getfixturevalue("spark")
    return lambda name, *directories: (
        journal_in(spark, *directories).report(name).toArrow().to_pylist()
    )


@pytest.fixture
def command(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Command:
    """Return what runs `lockkeeper analyze` in this process: exit code, output, errors.

    It takes the Spark of these tests for its own: another Java would take most of the time.
    """
    monkeypatch.setattr(job, "start_spark", lambda *_: spark)
    monkeypatch.setattr(spark, "stop", lambda: None)

    def run(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["analyze", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            sys.exit(__main__.main())
        return int(ended.value.code or 0), *capsys.readouterr()

    return run
