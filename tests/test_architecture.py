"""The law of dependency between the rooms: the import-linter contracts in pyproject.toml."""

import ast
import re
import shutil
import subprocess
import sys
import tomllib
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import grimp
import pytest

PROJECT = Path(__file__).parents[1]
ROOTS = ("broker_image", "crds", "operator", "analytics")
ROOMS = (
    "cli", "integrations", "testing", "server", "network", "client", "transport", "protocols",
    "broker", "store", "journal", "message",
)  # fmt: skip


def test_every_contract_is_kept() -> None:
    command = shutil.which("lint-imports", path=str(Path(sys.executable).parent))
    assert command, "import-linter is not installed: run `make setup`"
    result = subprocess.run(
        [command, "--no-cache"], cwd=PROJECT, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert "0 broken" in result.stdout


def imports() -> dict[str, set[str]]:
    """Return what each module of ours imports, for its types, too."""
    packages = [f.parent.name for root in ROOTS for f in (PROJECT / root).glob("*/__init__.py")]
    graph = grimp.build_graph(*packages, exclude_type_checking_imports=False, cache_dir=None)
    return {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}


def test_no_module_imports_itself_by_way_of_others() -> None:
    graph = imports()
    assert len(graph) > 500
    TopologicalSorter(graph).prepare()


def test_a_circle_would_be_seen() -> None:
    graph = imports()
    graph["lockkeeper.broker.outputs"].add("lockkeeper.broker.core")
    with pytest.raises(CycleError, match="nodes are in a cycle"):
        TopologicalSorter(graph).prepare()


def plain_imports(folder: Path) -> dict[str, set[str]]:
    """Return what each file imports of those beside it, which are no package, for its types too."""
    files = {path.stem: ast.parse(path.read_text("utf-8")) for path in folder.glob("*.py")}
    graph: dict[str, set[str]] = {}
    for name, tree in files.items():
        taken = {each.module for each in ast.walk(tree) if isinstance(each, ast.ImportFrom)}
        for each in ast.walk(tree):
            if isinstance(each, ast.Import):
                taken |= {alias.name for alias in each.names}
        graph[name] = {each for each in taken if each in files}
    return graph


@pytest.mark.parametrize("folder", ["bench", "demo", "e2e", "release"])
def test_no_file_beside_the_packages_imports_itself_by_way_of_others(folder: str) -> None:
    graph = plain_imports(PROJECT / folder)
    assert len(graph) > 2
    TopologicalSorter(graph).prepare()


def test_a_circle_for_types_alone_would_be_seen(tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text("if TYPE_CHECKING:\n    from other import Wanted\n")
    (tmp_path / "other.py").write_text("import one\n")
    with pytest.raises(CycleError, match="nodes are in a cycle"):
        TopologicalSorter(plain_imports(tmp_path)).prepare()


def test_every_room_stands_in_the_law() -> None:
    configuration = tomllib.loads((PROJECT / "pyproject.toml").read_text("utf-8"))
    contracts = configuration["tool"]["importlinter"]["contracts"]
    (layers,) = [
        contract["layers"]
        for contract in contracts
        if contract.get("layers", [""])[0].startswith("lockkeeper.cli ")
    ]
    lawful = {name.strip() for layer in layers for name in layer.split("|")}
    package = PROJECT / "broker_image" / "lockkeeper"
    rooms = {f"lockkeeper.{path.parent.name}" for path in package.glob("*/__init__.py")}
    assert rooms == lawful == {f"lockkeeper.{room}" for room in ROOMS}


def test_the_files_that_the_architecture_names_are_there() -> None:
    text = (PROJECT / "docs" / "ARCHITECTURE.md").read_text("utf-8")
    table = text[text.index("## To change X, open Y") :]
    named = [name for name in re.findall(r"`([a-z_.]+/[\w./]+)`", table) if "*" not in name]
    roots = (PROJECT, PROJECT / "broker_image" / "lockkeeper")
    absent = [name for name in named if not any((root / name).exists() for root in roots)]
    assert len(named) > 20
    assert absent == []


REGISTRY_READS = {"find", "find_queue", "find_topic", "matching", "matching_topics"}


def reaches(tree: ast.AST) -> list[str]:
    """Return what code takes from within a broker, and what of a broker it changes itself."""
    found = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Attribute):
            continue
        owner = ast.unparse(node.value)
        is_brokers = re.search(r"\b_?broker(\.|$)", owner) is not None
        is_changed = not isinstance(node.ctx, ast.Load)
        is_write = re.search(r"\bregistry$", owner) and node.attr not in REGISTRY_READS
        if is_write or (is_brokers and (is_changed or node.attr in ("context", "dirty"))):
            found.append(f"{node.lineno}: {owner}.{node.attr}")
    return sorted(found)


def test_the_core_is_asked_by_its_face_and_changed_by_nobody_else() -> None:
    package = PROJECT / "broker_image" / "lockkeeper"
    outside = [file for file in package.rglob("*.py") if package / "broker" not in file.parents]
    found = {
        str(file.relative_to(package)): reached
        for file in outside
        if (reached := reaches(ast.parse(file.read_text("utf-8"))))
    }
    assert len(outside) > 200
    assert found == {}


def test_a_reach_into_the_core_would_be_seen() -> None:
    code = (
        "self._broker.context.now\nbroker.flow.lines = []\nself.broker = broker\nbroker.now\n"
        "broker.registry.forget(name)\nbroker.registry.find(name)\n"
    )
    assert reaches(ast.parse(code)) == [
        "1: self._broker.context", "2: broker.flow.lines", "5: broker.registry.forget",
    ]  # fmt: skip
