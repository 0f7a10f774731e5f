"""Compiled modules stand for their sources only where both are the same."""

import ast
import subprocess
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

from lockkeeper import speedups
from lockkeeper.speedups import MANIFEST, PURE, SOURCES, Speedups, fingerprint, look_up

PROJECT = Path(__file__).parents[1]
MODULES = (PROJECT / "speedups" / "modules.txt").read_text("utf-8").split()
HOT = "lockkeeper.hot.path"


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    """A folder with the source of one module."""
    place = tmp_path / "sources"
    (place / "lockkeeper" / "hot").mkdir(parents=True)
    (place / "lockkeeper" / "hot" / "path.py").write_text("ANSWER = 42\n")
    return place


@pytest.fixture
def folder(tmp_path: Path, sources: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with what that module was compiled to."""
    monkeypatch.delenv(PURE, raising=False)
    place = tmp_path / "lockkeeper_speedups"
    (place / "hot").mkdir(parents=True)
    (place / "hot" / f"path{EXTENSION_SUFFIXES[0]}").write_bytes(b"\x7fELF")
    (place / MANIFEST).write_text(f"1.2.3\n{fingerprint([HOT], sources)}\n{HOT}\n")
    return place


def reason(found: Speedups) -> str:
    assert found.finder is None
    return found.reason


def test_what_was_compiled_from_these_sources_is_found(folder: Path, sources: Path) -> None:
    found = look_up(folder, sources)
    assert found.finder is not None
    assert not found.is_amiss
    assert str(found) == "compiled"
    spec = found.finder.find_spec(HOT, None)
    assert spec is not None
    assert spec.name == HOT
    assert spec.origin == str(folder / "hot" / f"path{EXTENSION_SUFFIXES[0]}")
    assert found.finder.find_spec("lockkeeper.hot", None) is None


def test_changed_sources_run_themselves(folder: Path, sources: Path) -> None:
    (sources / "lockkeeper" / "hot" / "path.py").write_text("ANSWER = 43\n")
    found = look_up(folder, sources)
    assert reason(found) == "lockkeeper-mq-speedups 1.2.3 was compiled from other sources"
    assert str(found) == f"pure Python: {found.reason}"
    assert found.is_amiss


def test_a_source_that_is_gone_is_another_one(folder: Path, sources: Path) -> None:
    (sources / "lockkeeper" / "hot" / "path.py").unlink()
    found = look_up(folder, sources)
    assert reason(found).startswith("lockkeeper-mq-speedups cannot be used: ")
    assert found.is_amiss


@pytest.mark.parametrize("text", ["", "1.2.3\n", "\udc80"])
def test_a_manifest_that_says_nothing_is_refused(folder: Path, sources: Path, text: str) -> None:
    (folder / MANIFEST).write_text(text, errors="surrogateescape")
    found = look_up(folder, sources)
    assert reason(found).startswith("lockkeeper-mq-speedups cannot be used: ")
    assert found.is_amiss


def test_another_python_gets_the_sources(folder: Path, sources: Path) -> None:
    compiled = folder / "hot" / f"path{EXTENSION_SUFFIXES[0]}"
    compiled.rename(compiled.with_name("path.cpython-39-x86_64-linux-gnu.so"))
    found = look_up(folder, sources)
    assert reason(found) == "lockkeeper-mq-speedups 1.2.3 was compiled for another Python"
    assert found.is_amiss


def test_nobody_has_to_have_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(PURE, raising=False)
    found = look_up(None)
    assert reason(found) == "lockkeeper-mq-speedups is not installed"
    assert not found.is_amiss


def test_whoever_asks_for_sources_gets_them(
    folder: Path, sources: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PURE, "1")
    found = look_up(folder, sources)
    assert reason(found) == "LOCKKEEPER_PURE is set"
    assert not found.is_amiss


def test_the_sources_of_all_compiled_modules_are_there() -> None:
    assert len(MODULES) > 60
    assert sorted(MODULES) == MODULES
    assert len(fingerprint(MODULES, SOURCES)) == 64


def source(module: str) -> Path:
    place = SOURCES / module.replace(".", "/")
    return place / "__init__.py" if place.is_dir() else place.with_suffix(".py")


def finals(module: str) -> set[str]:
    """Return the constants of a module, and its classes that have some."""
    found = set()
    for outer in ast.parse(source(module).read_text("utf-8")).body:
        inner = outer.body if isinstance(outer, ast.ClassDef) else [outer]
        for each in inner:
            if isinstance(each, ast.AnnAssign) and "Final" in ast.unparse(each.annotation):
                named = outer if isinstance(outer, ast.ClassDef) else each.target
                found.add(named.name if isinstance(named, ast.ClassDef) else ast.unparse(named))
    return found


def test_no_value_is_compiled_that_stands_in_another_source() -> None:
    """A constant of a source that is not compiled would keep its old value when that changes."""
    taken = [
        f"{module}: {imported.module}.{name.name}"
        for module in MODULES
        for imported in ast.walk(ast.parse(source(module).read_text("utf-8")))
        if isinstance(imported, ast.ImportFrom)
        and imported.module is not None
        and imported.module.startswith("lockkeeper.")
        and imported.module not in MODULES
        for name in imported.names
        if name.name in finals(imported.module)
    ]
    assert taken == []


def test_a_process_says_what_it_runs() -> None:
    program = "from lockkeeper.broker import core; print(core.__file__)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip().endswith(".py") == (speedups.running.finder is None)
