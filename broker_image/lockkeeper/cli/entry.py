"""Frame of every command line of ours: its version, its errors, its exit code."""

import sys
from collections.abc import Callable, Sequence
from typing import Annotated, Any, TypeAlias

import typer

from lockkeeper.cli.errors import explain, wants_traceback


def _show_version(context: typer.Context, wanted: bool) -> None:
    if wanted:
        from lockkeeper.cli.version import version_line

        typer.echo(version_line(context.command_path))
        raise typer.Exit


Version: TypeAlias = Annotated[
    bool,
    typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
]


def run(app: Callable[..., Any], program: str, words: Sequence[str] | None, obj: Any = None) -> int:
    """Run a command line and return its exit code; no error escapes.

    0 done; 1 it failed, and standard error says why in a line; 2 it was misused.
    """
    words = sys.argv[1:] if words is None else words
    try:
        app(args=words, prog_name=program, obj=obj)
    except SystemExit as finished:
        return finished.code if isinstance(finished.code, int) else 0
    except (Exception, KeyboardInterrupt) as error:
        if wants_traceback():
            raise
        text, code = explain(error, _command_of(program, words))
        print(f"{program}: {text}", file=sys.stderr)
        return code
    return 0


def _command_of(program: str, words: Sequence[str]) -> str:
    """Return the program with its command, for errors about the command."""
    command = words[0] if words and not words[0].startswith("-") else ""
    return f"{program} {command}".strip()
