"""`lockkeeper backup` and `lockkeeper restore`: a journal copied while it is written, and back."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from lockkeeper.cli.errors import misused

PLACE_HELP = "Directory, or URL that fsspec opens: s3://bucket/path, gs://…, abfs://…"
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for scripts.")]


def backup(
    directory: Annotated[
        Path,
        typer.Argument(
            metavar="DIR",
            help="Directory with the files db-N.log, written by Lockkeeper or by ActiveMQ.",
            exists=True,
            file_okay=False,
            readable=True,
        ),
    ],
    target: Annotated[str, typer.Argument(metavar="TARGET", help=PLACE_HELP)],
    keep: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Number of backups to keep in TARGET, each in a directory named by its time.",
        ),
    ] = None,
    as_json: Json = False,
    report: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="File for a report in JSON, for operators."),
    ] = None,
) -> None:
    """Copy a journal as it is at one moment, also while a broker writes it.

    The copy is read back and opened as by a broker; then it gets its manifest. The index is not
    copied, since recovery makes it anew.

    Example: lockkeeper backup /var/lib/lockkeeper /backups/departures --keep 7
    """
    from lockkeeper.store.backup import back_up
    from lockkeeper.store.backup.places import open_place
    from lockkeeper.store.backup.series import delete_old, next_of

    series = open_place(target)
    place = series if keep is None else next_of(series)
    manifest = back_up(directory, place)
    if keep is not None:
        delete_old(series, keep)
    if report is not None:
        told = {**manifest.as_object(), "files": len(manifest.files)}
        report.write_text(json.dumps({"place": str(place), **told}))
    if as_json:
        typer.echo(json.dumps({"place": str(place), **manifest.as_object()}))
        return
    figures = f"{manifest.size:,} bytes in {_counted(len(manifest.files), 'file')}"
    end = f", up to {manifest.mark}" if manifest.mark else ""
    typer.echo(f"{place}: {figures}{end}; {_counted(manifest.pending, 'message')} pending")


def restore(
    target: Annotated[str, typer.Argument(metavar="TARGET", help=PLACE_HELP)],
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", help="Directory to fill; empty, or not there yet.")
    ],
    until: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Time at which the restored journal ends, such as 2026-11-24T03:50:00Z.",
        ),
    ] = None,
    is_journal: Annotated[
        bool,
        typer.Option("--journal", help="TARGET is the directory of a broker, not a backup."),
    ] = False,
    if_empty: Annotated[
        bool,
        typer.Option(
            "--if-empty", help="Leave DIR alone when it holds a journal; that is no error."
        ),
    ] = False,
) -> None:
    """Copy a backup into an empty directory, for Lockkeeper or ActiveMQ to serve.

    A TARGET with several backups gives the newest one; with --until, the first one taken at that
    time or later.

    Example: lockkeeper restore /backups/departures /var/lib/lockkeeper
    """
    from lockkeeper.store.backup import copy_journal, holds_journal
    from lockkeeper.store.backup import restore as put_back
    from lockkeeper.store.backup.places import open_place
    from lockkeeper.store.backup.series import choose

    moment = None if until is None else _milliseconds(until)
    if if_empty and holds_journal(directory):
        typer.echo(f"{directory}: holds a journal already; nothing is restored")
        return
    if is_journal:
        pending = copy_journal(Path(target), directory, moment)
        typer.echo(f"{directory}: copied from {target}; {_counted(pending, 'message')} pending")
        return
    place = choose(open_place(target), moment)
    pending = put_back(place, directory, moment)
    typer.echo(f"{directory}: restored from {place}; {_counted(pending, 'message')} pending")


def _counted(number: int, what: str) -> str:
    """Return a number with its noun."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _milliseconds(text: str) -> int:
    """Return a time in ms since the epoch. Raises CommandError."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise misused(f"--until {text}: not a time such as 2026-11-24T03:50:00Z") from None
    if moment.tzinfo is None:
        raise misused(f"--until {text}: its time zone is missing; end it in Z for UTC")
    return int((moment - datetime.fromtimestamp(0, UTC)).total_seconds() * 1000)
