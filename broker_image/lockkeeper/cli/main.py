"""The command `lockkeeper`: its sub-commands, its version, and how it fails."""

import sys
from importlib.metadata import version
from typing import Annotated

import typer

from lockkeeper.cli import dead_letters, journal, running, transactions
from lockkeeper.cli.browse import browse
from lockkeeper.cli.destinations import destinations
from lockkeeper.cli.errors import explain, wants_traceback
from lockkeeper.cli.plugins import add_plugins
from lockkeeper.cli.receive import receive
from lockkeeper.cli.send import send
from lockkeeper.cli.status import status
from lockkeeper.cli.users import user
from lockkeeper.cli.why import why

app = typer.Typer(
    name="lockkeeper",
    help="A message broker that speaks OpenWire and keeps its messages in KahaDB.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for _command in (running.up, running.broker, status, destinations, why, send, receive, browse):
    app.command()(_command)
app.command()(user)
app.add_typer(dead_letters.app, name="dlq")
app.add_typer(transactions.app, name="transactions")
app.add_typer(journal.app, name="journal")
add_plugins(app)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"lockkeeper {version('lockkeeper')}")
        raise typer.Exit


@app.callback()
def _root(
    _version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """A message broker that speaks OpenWire and keeps its messages in KahaDB."""


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code; no error escapes.

    0 done; 1 it failed, and standard error says why in a line; 2 it was misused.
    """
    try:
        app(args=arguments, prog_name="lockkeeper")
    except SystemExit as finished:
        return finished.code if isinstance(finished.code, int) else 0
    except (Exception, KeyboardInterrupt) as error:
        if wants_traceback():
            raise
        text, code = explain(error)
        print(f"lockkeeper: {text}", file=sys.stderr)
        return code
    return 0


if __name__ == "__main__":
    sys.exit(main())
