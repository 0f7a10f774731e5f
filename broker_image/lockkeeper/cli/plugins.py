"""Commands that other packages bring along, by the entry point group `lockkeeper.commands`.

An entry point's value is a function as typer takes it, or a Typer app. It is loaded when the
command is called, not before: what it needs may be large, or not installed. An error of a class
that the package itself defines is one it raises knowingly; its text is for the person.
"""

import re
from collections.abc import Iterable
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec

import typer

from lockkeeper.cli.errors import CommandError, wants_traceback

GROUP = "lockkeeper.commands"
PASS_EVERYTHING_ON = {"allow_extra_args": True, "ignore_unknown_options": True}


def add_plugins(app: typer.Typer) -> None:
    """Add every command of the group to *app*."""
    for found in entry_points(group=GROUP):
        # An image may leave a package of the distribution out.
        if find_spec(_package_of(found)) is not None:
            _add(app, found)


def _add(app: typer.Typer, found: EntryPoint) -> None:
    package = _package_of(found)

    def run(context: typer.Context) -> None:
        try:
            _load(found)(args=context.args, prog_name=f"lockkeeper {found.name}")
        except ModuleNotFoundError as error:
            raise CommandError(_missing(found, error.name or str(error))) from error
        except Exception as error:
            if wants_traceback() or type(error).__module__.partition(".")[0] != package:
                raise
            raise CommandError(str(error)) from error

    app.command(
        found.name,
        help=f"From {package}: `lockkeeper {found.name} --help` tells more.",
        context_settings=PASS_EVERYTHING_ON,
        add_help_option=False,
    )(run)


def _package_of(found: EntryPoint) -> str:
    return found.module.partition(".")[0]


def _load(found: EntryPoint) -> typer.Typer:
    """Return the app of a command. Raises ModuleNotFoundError when something is missing."""
    loaded = found.load()
    if isinstance(loaded, typer.Typer):
        return loaded
    app = typer.Typer(
        pretty_exceptions_enable=False,
        add_completion=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.command()(loaded)
    return app


def _missing(found: EntryPoint, module: str) -> str:
    """Return what to say when a command needs *module*, which is not installed."""
    text = f"`lockkeeper {found.name}` needs {module}, which is not installed"
    if found.dist is None:
        return text
    extra = extra_with(module.partition(".")[0], found.dist.requires or ())
    return text if extra is None else f"{text}: pip install '{found.dist.name}[{extra}]'"


def extra_with(package: str, requirements: Iterable[str]) -> str | None:
    """Return the extra that brings *package*, going by a distribution's requirements."""
    for requirement in requirements:
        name = re.match(r"[\w.-]+", requirement)
        extra = re.search(r"extra\s*==\s*[\"']([\w.-]+)", requirement)
        if name and extra and _normal(name[0]) == _normal(package):
            return extra[1]
    return None


def _normal(name: str) -> str:
    """Return a distribution's name, or a module's, as one is compared with the other."""
    return re.sub(r"[-_.]+", "-", name).lower()
