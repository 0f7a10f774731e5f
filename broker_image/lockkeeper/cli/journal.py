"""`lockkeeper journal`: look into KahaDB directories, of a live broker too."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lockkeeper.cli.errors import FAILED, MISUSED, CommandError
from lockkeeper.cli.output import Column, Listing, show
from lockkeeper.journal.errors import JournalError
from lockkeeper.journal.files import DataFile, data_file_name, list_data_files
from lockkeeper.journal.verify import (
    FileReport,
    StoredRecord,
    TornTailError,
    last_written,
    read_records,
    verify_directory,
)

if TYPE_CHECKING:
    from lockkeeper.store.kahadb.losses import Loss

app = typer.Typer(
    help="Verify, print and salvage journals (KahaDB), also while a broker writes them."
)

Directory = Annotated[
    Path,
    typer.Argument(
        metavar="DIR",
        help="Directory with the files db-N.log, written by Lockkeeper or by ActiveMQ.",
        exists=True,
        file_okay=False,
        readable=True,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for scripts.")]


@app.command()
def verify(
    directory: Directory,
    as_json: Json = False,
    deep: Annotated[
        bool,
        typer.Option(
            "--deep",
            help="Also count the needed records of every file, and compare with a restart's count.",
        ),
    ] = False,
) -> None:
    """Verify every batch's checksum and read every record; nothing is changed.

    Exit code 1 means damage. A crash leaves a torn tail in the last file: it is shown, but no
    acknowledged message is lost by it. --deep needs a journal that nobody writes to; it takes
    about 50 microseconds a record, and memory for all message ids.
    """
    _require_data_files(directory)
    reports = list(verify_directory(directory))
    if any(report.problems for report in reports) or not deep:
        show(_listing(reports), as_json)
        if any(report.problems for report in reports):
            raise typer.Exit(FAILED)
        return
    from lockkeeper.cli.keeping import keeping_listing

    listing = keeping_listing(directory)
    show(listing, as_json)
    if listing.below:
        raise typer.Exit(FAILED)


@app.command()
def dump(
    directory: Directory,
    as_json: Json = False,
    destination: Annotated[
        str | None,
        typer.Option(
            "--destination", "-d", help="Destination of the records to print, as queue://NAME."
        ),
    ] = None,
) -> None:
    """Print every record on a line; with --json as an object with decoded message headers.

    Damages are printed on standard error and make the exit code 1. A torn tail of the last file
    is printed, too, but is no damage.
    """
    from lockkeeper.cli.records import record_line, record_object

    last_file = data_file_name(last_written(_require_data_files(directory)))
    damaged = False
    for found in read_records(directory):
        if isinstance(found, JournalError):
            damaged |= not (isinstance(found, TornTailError) and found.file_name == last_file)
            typer.echo(f"lockkeeper: {found}", err=True)
        elif _is_about(found, destination):
            print(json.dumps(record_object(found)) if as_json else record_line(found))
    if damaged:
        raise typer.Exit(FAILED)


@app.command()
def salvage(
    directory: Directory,
    target: Annotated[
        Path,
        typer.Argument(metavar="OUT", help="Directory for the copy; empty, or not there yet."),
    ],
    as_json: Json = False,
) -> None:
    """Write a sound copy of a damaged journal to OUT, with a report of the losses.

    DIR is not changed; no broker may write to it meanwhile. Lockkeeper or ActiveMQ can serve OUT
    at once. OUT also holds the report, as salvage.json and salvage.txt, and the damaged bytes,
    in OUT/damaged.

    Example: lockkeeper journal salvage /var/lib/lockkeeper /var/lib/salvaged
    """
    from lockkeeper.store.kahadb.salvage import salvage as write_copy

    _require_data_files(directory)
    losses = write_copy(directory, target)
    show(_losses_listing(losses), as_json)


def _losses_listing(losses: "Sequence[Loss]") -> Listing:
    """Return a table of the damages, with the messages concerned below."""
    rows = []
    for loss in losses:
        figures = (loss.offset, loss.length, len(loss.lost), len(loss.unsure))
        names = ", ".join(loss.destinations)
        rows.append([loss.file_name, *(f"{figure:,}" for figure in figures), names])
    below = [f"lost: {one['message']} of {one['destination']}" for x in losses for one in x.lost]
    below += [f"unsure: {text}" for loss in losses for text in loss.unsure]
    counts = ("Offset", "Bytes", "Lost", "Unsure")
    numbers = [Column(count, number=True) for count in counts]
    return Listing(
        [Column("File"), *numbers, Column("Destinations")],
        rows,
        [asdict(loss) for loss in losses],
        below=below or ["nothing is damaged"] * (not losses),
    )


def _require_data_files(directory: Path) -> list[DataFile]:
    """Return the data files; refuse a directory without any, with a hint."""
    files = list_data_files(directory)
    if files:
        return files
    below = sorted({path.parent for path in directory.glob("*/db-*.log")})
    hint = f"; did you mean {below[0]}?" if below else ""
    reason = f"{directory}: no journal here, files db-N.log are expected{hint}"
    raise CommandError(reason, MISUSED)


def _is_about(stored: StoredRecord, destination: str | None) -> bool:
    """Tell whether a record is about the destination asked for, by its URL or its name."""
    if destination is None:
        return True
    subject = getattr(stored.record, "destination", None)
    return subject is not None and destination in (str(subject), subject.name)


def _listing(reports: Sequence[FileReport]) -> Listing:
    """Return a table of the files, with what is wrong with them below."""
    counts = ("Bytes", "Batches", "Records", "Ends at")
    rows = []
    for report in reports:
        figures = (report.size, report.batches, report.records, report.end)
        rows.append([report.file_name, *(f"{figure:,}" for figure in figures), _state(report)])
    return Listing(
        [Column("File"), *(Column(count, number=True) for count in counts), Column("State")],
        rows,
        [asdict(report) for report in reports],
        below=[problem for report in reports for problem in report.problems],
        styles=["red" if report.problems else "" for report in reports],
    )


def _state(report: FileReport) -> str:
    """Return what a file is like in a word or two."""
    if report.problems:
        return f"damaged ({len(report.problems)})"
    if report.torn_at is not None:
        return f"torn tail at {report.torn_at:,}"
    if report.unchecked_batches:
        return f"sound ({report.unchecked_batches} batches have no checksum)"
    return "sound"
