"""Commands that other packages bring along, by the entry point group `lockkeeper.commands`.

An entry point's value is a function as typer takes it, or a Typer app. It is loaded when the
command is called, not before: what it needs may be large, or not installed. An error of a class
that the package itself defines is one it raises knowingly; its text is for the person.
"""

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import typer

from lockkeeper.cli.errors import CommandError, wants_traceback
from lockkeeper.cli.extras import missing
from lockkeeper.cli.lazy import built

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "lockkeeper.commands"
PASS_EVERYTHING_ON = {"allow_extra_args": True, "ignore_unknown_options": True}


def plugins() -> dict[str, Any]:
    """Return every command of the group by its name."""
    from importlib.metadata import entry_points

    # An image may leave a package of the distribution out.
    return {
        found.name: _command_of(found)
        for found in entry_points(group=GROUP)
        if find_spec(_package_of(found)) is not None
    }


def _command_of(found: "EntryPoint") -> Any:
    package = _package_of(found)

    def run(context: typer.Context) -> None:
        try:
            _load(found)(args=context.args, prog_name=f"lockkeeper {found.name}")
        except ModuleNotFoundError as error:
            program = f"lockkeeper {found.name}"
            text = missing(program, error.name or str(error), found.dist)
            raise CommandError(text) from error
        except Exception as error:
            if wants_traceback() or type(error).__module__.partition(".")[0] != package:
                raise
            raise CommandError(str(error)) from error

    app = typer.Typer(add_completion=False)
    app.command(
        found.name,
        help=f"From {package}: `lockkeeper {found.name} --help` tells more.",
        context_settings=PASS_EVERYTHING_ON,
        add_help_option=False,
    )(run)
    return built(app)


def _package_of(found: "EntryPoint") -> str:
    return found.module.partition(".")[0]


def _load(found: "EntryPoint") -> typer.Typer:
    """Return the app of a command. Raises ModuleNotFoundError when something is missing."""
    loaded = found.load()
    if isinstance(loaded, typer.Typer):
        return loaded
    app = typer.Typer(
        pretty_exceptions_enable=False,
        add_completion=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.command()(loaded)
    return app
