"""`lockkeeper keep`: what came to journals since the last run, added to a history of records."""

import json
from typing import Annotated

import typer

from lockkeeper_analytics.arguments import Directories, SkipCorrupt
from lockkeeper_analytics.history.formats import Format


def keep(
    directories: Directories,
    out: Annotated[
        str, typer.Option("--out", "-o", help="Folder or URL of the history, made if need be.")
    ] = "history",
    form: Annotated[
        Format | None,
        typer.Option(
            "--format",
            "-f",
            help="Of a new history: parquet on a disk, delta for a URL or if this says so.",
        ),
    ] = None,
    skip_corrupt: SkipCorrupt = False,
) -> None:
    """Add what came to journals since the last run to a history of records."""
    # Arrow takes a moment to import, and `--help` does without.
    from lockkeeper_analytics.history import keeping
    from lockkeeper_analytics.tables.options import parse_options

    options = {"paths": json.dumps(directories), "corrupt": "skip" if skip_corrupt else "fail"}
    kept = keeping.keep(parse_options(options), out, form)
    typer.echo(f"{kept.records:,} records added to {out}")
    if kept.lost:
        typer.echo(f"lockkeeper: {kept.loss}", err=True)
