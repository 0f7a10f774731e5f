"""Command line options that `lockkeeper analyze` and `lockkeeper sql` share."""

from typing import Annotated

import typer

Directories = Annotated[
    list[str],
    typer.Argument(
        metavar="DIR…", help="Journal directories: Lockkeeper's or ActiveMQ's, live or not."
    ),
]
Destination = Annotated[
    str,
    typer.Option("--destination", "-d", help="Show these only: names, wildcards, commas between."),
]
Since = Annotated[
    str,
    typer.Option("--since", help="Show only from then on: 2026-01-31T12:00:00Z, ms, or 24h ago."),
]
SkipCorrupt = Annotated[
    bool, typer.Option("--skip-corrupt", help="Leave out damaged batches, do not stop.")
]
