"""The house's numbers and manners, over every file that git tracks."""

import ast
import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[1]
SOURCE_ROOTS = ("broker_image", "crds", "operator", "analytics")
TEST_ROOTS = ("tests", "e2e", "bench")

WHOLE_BROKER = PROJECT / "broker_image" / "lockkeeper" / "__init__.py"
"""Names the rooms instead of having a sign of its own."""

LINE_CHARACTERS_MAX = 100
FILE_LINES_MAX = 500
FUNCTION_LINES_MAX = 70

HAND_WRITTEN = {".py", ".pyi", ".java", ".sh", ".html", ".css", ".js"}
WITHOUT_SUFFIX = {"Makefile", "Dockerfile", "run"}

# Written in pieces, so that this file does not hold what it forbids.
MACHINE_PATHS = re.compile(
    rb"(?<![\w.])/(?:" + b"|".join((b"root", b"home/[a-z]", b"Users/[A-Z]", b"work")) + rb")/"
)
REGISTRY_HOSTS = re.compile(
    b"|".join(
        re.escape(host + domain)
        for host, domain in (
            (b"pypi.", b"org"),
            (b"files.python", b"hosted.org"),
            (b"registry.npm", b"js.org"),
            (b"repo1.maven", b".org"),
            (b"repo.maven.", b"apache.org"),
            (b"deb.debian", b".org"),
            (b"proxy.go", b"lang.org"),
            (b"static.crates", b".io"),
        )
    )
)
UNFINISHED = re.compile(
    rb"\b(?:" + b"|".join((b"TO" + b"DO", b"FIX" + b"ME", b"XX" + b"X")) + rb")\b"
)


@cache
def tracked_files() -> tuple[Path, ...]:
    listing = subprocess.run(
        ["git", "ls-files", "-z"], cwd=PROJECT, check=True, capture_output=True
    ).stdout.decode()
    paths = (PROJECT / name for name in listing.split("\0") if name)
    return tuple(path for path in paths if path.is_file())


def hand_written_files() -> Iterator[Path]:
    for path in tracked_files():
        if path.suffix in HAND_WRITTEN or path.name in WITHOUT_SUFFIX:
            yield path


def python_files() -> Iterator[tuple[Path, ast.Module]]:
    for path in tracked_files():
        if path.suffix == ".py":
            yield path, ast.parse(path.read_text("utf-8"))


def named(path: Path, line: int | None = None) -> str:
    name = path.relative_to(PROJECT).as_posix()
    return name if line is None else f"{name}:{line}"


def test_the_files_are_there_to_look_at() -> None:
    assert len(list(hand_written_files())) > 50


def test_every_folder_at_the_top_is_in_the_architecture() -> None:
    """What a command left in the working directory is committed in no time."""
    text = (PROJECT / "docs" / "ARCHITECTURE.md").read_text("utf-8")
    tops = {path.relative_to(PROJECT).parts[0] for path in tracked_files()}
    folders = {top for top in tops if (PROJECT / top).is_dir() and not top.startswith(".")}
    assert {folder for folder in folders if f"`{folder}/" not in text} == set()


def test_lines_fit_the_page() -> None:
    too_long = [
        named(path, number)
        for path in hand_written_files()
        for number, line in enumerate(path.read_text("utf-8").splitlines(), start=1)
        if len(line) > LINE_CHARACTERS_MAX
    ]
    assert not too_long, "\n" + "\n".join(too_long)


def test_files_are_short() -> None:
    lengths = {
        named(path): len(path.read_text("utf-8").splitlines()) for path in hand_written_files()
    }
    assert {name: lines for name, lines in lengths.items() if lines > FILE_LINES_MAX} == {}


def test_functions_are_short() -> None:
    too_long = [
        f"{named(path, node.lineno)} {node.name}: {node.end_lineno - node.lineno + 1} lines"
        for path, tree in python_files()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.end_lineno is not None
        and node.end_lineno - node.lineno + 1 > FUNCTION_LINES_MAX
    ]
    assert not too_long, "\n" + "\n".join(too_long)


def test_no_test_imports_a_conftest_as_it_runs() -> None:
    """Every folder of tests has one: which of them that is depends on what ran before."""
    found = [
        named(path, node.lineno)
        for path, tree in python_files()
        if path.relative_to(PROJECT).parts[0] == "tests"
        for scope in ast.walk(tree)
        if isinstance(scope, ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        for node in scope.body
        if isinstance(node, ast.ImportFrom) and node.module == "conftest"
    ]
    assert found == []


def test_every_module_says_what_it_is() -> None:
    silent = [
        named(path)
        for path, tree in python_files()
        if path.relative_to(PROJECT).parts[0] != "tests" and not ast.get_docstring(tree)
    ]
    assert not silent, "\n" + "\n".join(silent)


def test_every_module_begins_with_a_noun() -> None:
    opening = re.compile(r"(What|Which|How|Whose|Who|When|Where|Why|Whether|That|Until)\b")
    riddles = [
        named(path)
        for path, tree in python_files()
        if path.relative_to(PROJECT).parts[0] in ("broker_image", "crds", "operator", "analytics")
        and opening.match(ast.get_docstring(tree) or "")
    ]
    assert not riddles, "\n" + "\n".join(riddles)


def test_every_package_has_a_room_sign() -> None:
    without = [
        named(path)
        for path, tree in python_files()
        if path.name == "__init__.py"
        and "Never here" not in (ast.get_docstring(tree) or "")
        and path != WHOLE_BROKER
    ]
    assert not without, "\n" + "\n".join(without)


def test_source_roots_and_test_folders_are_no_packages() -> None:
    inits = [path for path in PROJECT.glob("*/**/__init__.py") if ".venv" not in path.parts]
    parents = {path.parent.relative_to(PROJECT) for path in inits}
    wrong = [
        parent.as_posix()
        for parent in parents
        if parent.parts[0] in TEST_ROOTS or parent.as_posix() in SOURCE_ROOTS
    ]
    assert not wrong, "\n" + "\n".join(wrong)


@pytest.mark.parametrize(
    "forbidden", [MACHINE_PATHS, REGISTRY_HOSTS], ids=["machine paths", "registry hosts"]
)
def test_nothing_names_a_machine(forbidden: re.Pattern[bytes]) -> None:
    found = [
        f"{named(path)}: {match.group().decode('utf-8', 'replace')}"
        for path in tracked_files()
        for match in forbidden.finditer(path.read_bytes())
    ]
    assert not found, "\n" + "\n".join(found)


def test_nothing_is_left_for_later() -> None:
    found = [named(path) for path in hand_written_files() if UNFINISHED.search(path.read_bytes())]
    assert not found, "\n" + "\n".join(found)


def test_what_tests_share_has_a_name_of_its_own() -> None:
    """They are all found by their plain names: of two alike the tests would get either."""
    tests = Path(__file__).parent.rglob("*.py")
    shared = [path.name for path in tests if not path.name.startswith(("test_", "conftest"))]
    assert sorted(set(shared)) == sorted(shared)
