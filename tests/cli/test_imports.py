"""Imports of the command line: none that a command does not use, none that is not installed."""

import os
import subprocess
import sys
from importlib.metadata import Distribution
from pathlib import Path

import pytest
from cli_support import Place

from lockkeeper.cli.commands import TABLE, whole
from lockkeeper.cli.extras import extra_of, missing

HEAVY = (
    "aiohttp",
    "rich",
    "uvloop",
    "yaml",
    "lockkeeper.broker",
    "lockkeeper.server",
    "lockkeeper.store",
    "lockkeeper.journal",
    "lockkeeper_api.broker",
)
OF_HELP = (*HEAVY, "asyncio", "pydantic", "lockkeeper.client", "lockkeeper.message")
COUNTED = """
import atexit, sys
atexit.register(lambda: print(*sys.modules, file=open({file!r}, "w")))
from lockkeeper.cli.main import main
sys.exit(main({words!r}))
"""
ALONE = """
import sys
class OnlyOurs:
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        allowed = ("lockkeeper", "_sysconfig", *{allowed!r})
        if top not in sys.stdlib_module_names and not top.startswith(allowed):
            raise ModuleNotFoundError(f"No module named {{top}}", name=top)
sys.meta_path.insert(0, OnlyOurs())
{code}
"""
OF_CLI = (
    "typer", "rich", "shellingham", "click", "markdown_it", "mdurl", "pygments", "annotated_doc",
    "typing_extensions", "pydantic", "annotated_types", "typing_inspection",
)  # fmt: skip
"""Command line, with what typer brings: it reads options with pydantic."""


def imported(directory: Path, *words: str, code: int = 0) -> set[str]:
    """Return the modules that a command has imported when it ends."""
    listing = directory / "modules"
    program = COUNTED.format(file=str(listing), words=list(words))
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == code, done.stderr
    return set(listing.read_text().split())


def found(modules: set[str], unwanted: tuple[str, ...]) -> set[str]:
    return {
        module
        for module in modules
        if any(module == each or module.startswith(f"{each}.") for each in unwanted)
    }


def ours(modules: set[str]) -> int:
    return len([module for module in modules if module.startswith("lockkeeper")])


def test_the_version_needs_nothing(tmp_path: Path) -> None:
    modules = imported(tmp_path, "--version")
    assert found(modules, (*OF_HELP, "typer")) == set()


def test_help_imports_no_command(tmp_path: Path) -> None:
    modules = imported(tmp_path, "--help")
    assert found(modules, OF_HELP) == set()
    # lockkeeper.cli: main, errors, extras, commands, lazy, entry, plugins; two packages.
    assert ours(modules) <= 10
    assert len(modules) < 260


@pytest.mark.parametrize("command", ["send", "receive", "browse"])
def test_clients_import_the_client_alone(broker: Place, tmp_path: Path, command: str) -> None:
    options = {
        "send": ["IMPORTS", "hello"],
        "receive": ["NOTHING", "--timeout", "100ms"],
        "browse": ["NOTHING"],
    }
    code = 1 if command == "receive" else 0
    modules = imported(tmp_path, command, *options[command], "--url", broker.url, code=code)
    assert found(modules, HEAVY) == set()
    assert ours(modules) <= 120
    assert "lockkeeper.client.listener" not in modules


def test_every_command_is_listed_with_the_help_it_has() -> None:
    group = whole()
    helps = {name: (command.help or "") for name, command in group.commands.items()}
    assert set(TABLE) < set(helps)
    for name, listed in TABLE.items():
        first = " ".join(helps[name].partition("\n\n")[0].split())
        assert first == listed.help, name


def alone(code: str, *allowed: str) -> "subprocess.CompletedProcess[str]":
    """Run a program for which only what is *allowed* is installed besides us."""
    program = ALONE.format(allowed=allowed, code=code)
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False,
        env=environment,
    )  # fmt: skip


@pytest.mark.parametrize(
    "module", ["lockkeeper.client", "lockkeeper.client.aio", "lockkeeper.client.listener"]
)
def test_the_client_needs_nothing_that_is_installed(module: str) -> None:
    done = alone(f"import {module}")
    assert (done.returncode, done.stderr) == (0, "")


def command(*words: str) -> str:
    return f"from lockkeeper.cli.main import main; sys.exit(main({list(words)!r}))"


def test_without_extras_the_version_is_there_and_kubectl_names_its_own() -> None:
    assert alone(command("--version")).returncode == 0
    kubectl = alone("from lockkeeper.cli.main import kubectl; sys.exit(kubectl(['top']))")
    assert "`kubectl lockkeeper` needs typer" in kubectl.stderr
    assert "[broker]" in kubectl.stderr


@pytest.mark.parametrize(
    ("words", "extra"),
    [
        ((), "cli"),
        (("--help",), "cli"),
        (("send", "Q", "hello"), "cli"),
        (("dlq", "list"), "cli"),
        (("broker", "--data", "data"), "broker"),
        (("status",), "broker"),
        (("sql", "data"), "analytics"),
        (("analyze", "data"), "analytics"),
        (("analyze", "broker/orders"), "broker"),
    ],
)
def test_without_extras_a_command_names_the_one_with_all_it_needs(
    words: tuple[str, ...], extra: str
) -> None:
    """It would ask for another one after that, if it only named what is missed first."""
    done = alone(command(*words))
    assert (done.returncode, done.stderr) == (
        1,
        "lockkeeper: `lockkeeper` needs typer, which is not installed: "
        f"pip install 'lockkeeper-mq[{extra}]'\n",
    )


def test_the_command_line_alone_is_enough_for_messages() -> None:
    assert {name for name in TABLE if extra_of([name], is_in_cluster=False) == "cli"} == {
        "send", "receive", "browse", "dlq",
    }  # fmt: skip


def test_with_the_command_line_alone_messages_are_sent_and_received(broker: Place) -> None:
    for words in (
        ("send", "ALONE", "hello"),
        ("browse", "ALONE"),
        ("receive", "ALONE", "-t", "5s"),
    ):
        done = alone(command(*words, "--url", broker.url), *OF_CLI)
        assert (done.returncode, done.stderr) == (0, "")
        assert "hello" in done.stdout or words[0] == "send"


@pytest.mark.parametrize(
    ("words", "package", "extra"),
    [
        (["broker", "--data", "data"], "uvloop", "broker"),
        (["up"], "yaml", "broker"),
        (["analyze", "data"], "py4j", "spark"),
    ],
)
def test_what_is_missing_is_named_with_its_extra(
    words: list[str], package: str, extra: str
) -> None:
    done = alone(command(*words), *OF_CLI)
    assert done.returncode == 1
    assert done.stderr == (
        f"lockkeeper: `lockkeeper {words[0]}` needs {package}, which is not installed: "
        f"pip install 'lockkeeper-mq[{extra}]'\n"
    )


def test_the_operator_names_its_extra() -> None:
    done = alone("from lockkeeper_operator.command import main; sys.exit(main())")
    assert done.returncode == 1
    assert done.stderr.endswith("pip install 'lockkeeper-mq[operator]'\n")


def test_a_package_of_another_name_is_found() -> None:
    assert "[broker]" in missing("lockkeeper up", "yaml.nodes")
    assert missing("lockkeeper up", "unheard_of").endswith(
        "needs unheard_of, which is not installed"
    )


def test_the_distribution_alone_needs_nothing() -> None:
    required = Distribution.from_name("lockkeeper-mq").requires or []
    assert [each for each in required if "extra ==" not in each] == []
