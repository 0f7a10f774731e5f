"""`lockkeeper analyze`, also as `python -m lockkeeper_analytics`."""

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.status import Status
from rich.table import Table
from rich.text import Text

from lockkeeper_analytics.arguments import Destination, Directories, Since, SkipCorrupt
from lockkeeper_analytics.errors import AnalyticsError

if TYPE_CHECKING:
    from lockkeeper_analytics.comparison.changes import Comparison

ERROR_EXIT = 1
BROKEN_EXIT = 3
"""A rule was broken; the report is written all the same."""

Rules = Annotated[
    list[str] | None,
    typer.Option(
        "--rule",
        help="A limit such as 'p99 > 5s for 10m'; may be repeated. Exit code 3: broken.",
    ),
]
Bodies = Annotated[
    bool, typer.Option("--bodies", help="Tell the fields of bodies, too, without their values.")
]
Masks = Annotated[
    list[str] | None,
    typer.Option("--mask", help="Hide these fields of bodies: '*.password'; may be repeated."),
]
Beside = Annotated[
    str,
    typer.Option(
        "--beside",
        help="Folder of a former run to compare figures with.  [default: what --out holds]",
    ),
]


def analyze(
    directories: Directories,
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Folder for the page, Parquet and JSON files.")
    ] = Path("report"),
    destination: Destination = "",
    since: Since = "",
    until: Annotated[str, typer.Option("--until", help="As it stood then, in the same way.")] = "",
    report: Annotated[
        list[str] | None,
        typer.Option("--report", "-r", help="Only this one; may be repeated."),
    ] = None,
    rule: Rules = None,
    bodies: Bodies = False,
    mask: Masks = None,
    beside: Beside = "",
    skip_corrupt: SkipCorrupt = False,
    keep_records: Annotated[
        bool, typer.Option("--keep-records", help="Keep the decoded records as Parquet, too.")
    ] = False,
    memory: Annotated[
        str, typer.Option("--memory", help="Upper bound of Spark's heap, such as 1g or 512m.")
    ] = "1g",
    master: Annotated[
        str, typer.Option("--master", help="Where Spark runs; local[*] takes all cores.")
    ] = "local[*]",
) -> None:
    """Read journals with Spark and write a report: a web page; its figures as Parquet and JSON."""
    began = time.monotonic()
    console = Console(stderr=True)
    with _Progress(console) as tell:
        # Spark takes a second to import, and `--help` does without.
        from lockkeeper_analytics import job
        from lockkeeper_analytics.agreements.breaches import told

        outcome = job.analyze(
            directories,
            out,
            destination=destination,
            since=since,
            until=until,
            reports=report or (),
            rules=rule or (),
            bodies=bodies,
            masks=mask or (),
            beside=beside,
            skip_corrupt=skip_corrupt,
            keep_records=keep_records,
            master=master,
            memory=memory,
            tell=tell,
        )
    seconds = time.monotonic() - began
    console.print(f"{outcome.records:,} records read in {seconds:.0f} s", highlight=False)
    if outcome.comparison is not None:
        _show_comparison(console, outcome.comparison)
    typer.echo(outcome.page)
    broken = [each for each in outcome.verdicts if not each.is_kept]
    for each in broken:
        typer.echo(f"lockkeeper: broken: {told(each)}", err=True)
    if broken:
        raise typer.Exit(BROKEN_EXIT)


def _show_comparison(console: Console, comparison: "Comparison") -> None:
    """Print each headline figure beside the former run's."""
    from lockkeeper_analytics.page.comparison import HEADINGS, told_conditions, told_rows

    console.print(" ".join(told_conditions(comparison)), highlight=False, markup=False)
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for heading in HEADINGS:
        table.add_column(heading, justify="left" if heading == HEADINGS[0] else "right")
    for row in told_rows(comparison):
        table.add_row(*map(Text, row))
    console.print(table)


class _Progress:
    """One line that says what goes on; a line for each step where nobody looks on."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._status: Status | None = console.status("") if console.is_terminal else None

    def __enter__(self) -> Callable[[str], None]:
        if self._status is not None:
            self._status.start()
        return self._tell

    def __exit__(self, *_: object) -> None:
        if self._status is not None:
            self._status.stop()

    def _tell(self, step: str) -> None:
        if self._status is not None:
            self._status.update(f"{step} …")
        else:
            self._console.print(f"analyze: {step}", highlight=False)


def main() -> int:
    """Run the command and return its exit code; errors of this package become one line."""
    app = typer.Typer(
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.command()(analyze)
    try:
        app(prog_name="lockkeeper analyze")
    except AnalyticsError as error:
        print(f"lockkeeper: {error}", file=sys.stderr)
        return ERROR_EXIT
    return 0


if __name__ == "__main__":
    sys.exit(main())
