"""The command: `python -m lockkeeper_analytics DIR… --out report/`, and `lockkeeper analyze`."""

import sys
import time
import warnings
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from lockkeeper_analytics.errors import AnalyticsError
from lockkeeper_analytics.job import analyze as analyze_journals


def analyze(
    directories: Annotated[
        list[Path], typer.Argument(help="Journal directories, Lockkeeper's or ActiveMQ's.")
    ],
    out: Annotated[Path, typer.Option("--out", help="Where the report goes.")] = Path("report"),
    destination: Annotated[
        str | None, typer.Option("--destination", help="Only this one; wildcards as in ActiveMQ.")
    ] = None,
    since: Annotated[
        str | None, typer.Option("--since", help="Only from this time on (ISO 8601, or ms).")
    ] = None,
    master: Annotated[str, typer.Option("--master", help="Spark's master.")] = "local[*]",
) -> None:
    """Write a report of journals: one page, and a Parquet file for each question.

    The journal of a running broker may be read; it is not touched.
    """
    warnings.filterwarnings("ignore", category=FutureWarning, module="pyspark")
    console = Console(stderr=True, highlight=False)
    chosen = {"destination": destination, "since": since}
    options = {name: value for name, value in chosen.items() if value is not None}
    began = time.monotonic()
    with console.status("starting") as status:

        def say(text: str) -> None:
            status.update(f"{text} …")
            if not console.is_terminal:
                console.print(f"[{time.monotonic() - began:6.1f} s] {text}", markup=False)

        page = analyze_journals(directories, out, master, say, **options)
    print(f"report: {page}")


def main() -> None:
    """Run the command; a known error is one line."""
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.command()(analyze)
    try:
        app()
    except AnalyticsError as error:
        print(f"lockkeeper analyze: {error}", file=sys.stderr)
        raise SystemExit(1) from None


if __name__ == "__main__":
    main()
