"""Commands that other packages bring along, by really installed entry points."""

import os
import subprocess
from pathlib import Path

import pytest
from cli_support import COMMAND

from lockkeeper.cli.extras import extra_with

MODULE = '''
"""A package with commands."""
import typer

class WeatherError(Exception):
    pass

def forecast(place: str, days: int = 1) -> None:
    """Tell tomorrow's weather."""
    if place == "nowhere":
        raise WeatherError("nowhere has no weather")
    if place == "defect":
        raise ZeroDivisionError
    print(f"{place}: rain for {days} days")

app = typer.Typer()

@app.command()
def now() -> None:
    print("rain")

@app.command()
def later() -> None:
    import cloud_physics.models
'''
METADATA = """\
Metadata-Version: 2.1
Name: weather-report
Version: 1.0
Provides-Extra: science
Requires-Dist: cloud.physics>=2; extra == "science"
"""
ENTRY_POINTS = """\
[lockkeeper.commands]
forecast = weather:forecast
weather = weather:app
storm = weather.storm:app
heavy = heavy_weather:app
"""


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    (tmp_path / "weather.py").write_text(MODULE)
    (tmp_path / "heavy_weather.py").write_text("import cloud_physics\n")
    information = tmp_path / "weather_report-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text(METADATA)
    (information / "entry_points.txt").write_text(ENTRY_POINTS)
    return tmp_path


def run(installed: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    environment = {**os.environ, "PYTHONPATH": str(installed)}
    return subprocess.run(
        [COMMAND, *arguments], env=environment, capture_output=True, text=True, check=False
    )


def test_they_are_listed_though_what_they_need_is_missing(installed: Path) -> None:
    done = run(installed, "--help")
    assert done.returncode == 0
    assert all(name in done.stdout for name in ("forecast", "weather", "storm", "heavy"))


def test_a_function_is_a_command_with_its_arguments_and_its_help(installed: Path) -> None:
    assert run(installed, "forecast", "Oslo", "--days", "3").stdout == "Oslo: rain for 3 days\n"
    assert "Tell tomorrow's weather." in run(installed, "forecast", "--help").stdout
    assert run(installed, "forecast").returncode == 2


def test_an_app_keeps_its_sub_commands(installed: Path) -> None:
    assert run(installed, "weather", "now").stdout == "rain\n"


@pytest.mark.parametrize("arguments", [["heavy"], ["weather", "later"]])
def test_what_is_missing_is_named_with_the_extra_that_brings_it(
    installed: Path, arguments: list[str]
) -> None:
    done = run(installed, *arguments)
    assert done.returncode == 1
    assert done.stderr == (
        f"lockkeeper: `lockkeeper {arguments[0]}` needs cloud_physics, which is not installed: "
        "pip install 'weather-report[science]'\n"
    )


def test_analyze_without_spark_names_its_extra(tmp_path: Path) -> None:
    missing = 'raise ModuleNotFoundError("No module named pyspark", name="pyspark")'
    (tmp_path / "pyspark.py").write_text(missing)
    done = run(tmp_path, "analyze", str(tmp_path))
    assert (done.returncode, done.stderr) == (
        1,
        "lockkeeper: `lockkeeper analyze` needs pyspark, which is not installed: "
        "pip install 'lockkeeper-mq[spark]'\n",
    )


def test_errors_of_the_package_itself_are_for_the_person(installed: Path) -> None:
    done = run(installed, "forecast", "nowhere")
    assert (done.returncode, done.stderr) == (1, "lockkeeper: nowhere has no weather\n")
    assert "this is a defect of Lockkeeper: ZeroDivisionError" in (
        run(installed, "forecast", "defect").stderr
    )


def test_the_extra_is_found_in_requirements() -> None:
    requirements = ["rich>=14", "py_spark[sql]>=4; extra == 'analytics' and python_version > '3'"]
    assert extra_with("py-spark", requirements) == "analytics"
    assert extra_with("rich", requirements) is None
    assert extra_with("typer", requirements) is None
