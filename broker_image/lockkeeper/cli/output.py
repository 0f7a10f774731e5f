"""Output of commands: tables for people, plain columns for other programs."""

import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from rich.console import RenderableType

WATCH_SECONDS = 1.0
WHOLE_MAX = 36
_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB")
_DAY, _HOUR, _MINUTE = 86_400, 3_600, 60


def is_terminal() -> bool:
    """Tell whether a person sees what is printed."""
    return sys.stdout.isatty()


def say(text: str) -> None:
    """Tell the person something that is not the command's output."""
    print(f"lockkeeper: {text}", file=sys.stderr, flush=True)


@contextmanager
def telling_steps() -> Iterator[Callable[[str], None]]:
    """Give what tells the person what goes on: one line that changes, or, where nobody looks on,
    a line for each step.
    """
    if sys.stderr.isatty():
        from rich.console import Console
        from rich.text import Text

        console = Console(stderr=True, highlight=False)
        with console.status("") as line:
            yield lambda step: line.update(Text(f"{step} …"))
        return
    before = ""

    def show_progress(step: str) -> None:
        nonlocal before
        if step != before:
            say(step)
        before = step

    yield show_progress


def size_text(size: int) -> str:
    """Return *size* bytes for people, such as `1.5 MiB`."""
    amount, unit = float(size), 0
    while amount >= 1024 and unit < len(_UNITS) - 1:
        amount, unit = amount / 1024, unit + 1
    return f"{amount:.3g} {_UNITS[unit]}" if amount < 1000 else f"{amount:.0f} {_UNITS[unit]}"


def counted(count: int, noun: str) -> str:
    """Return *count* of something whose plural ends in s, such as `1 file` or `3,000 files`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def duration_text(seconds: float) -> str:
    """Return a duration for people in its two largest units, such as `3 h 12 min`."""
    left = max(0, int(seconds))
    if left < _MINUTE:
        return f"{left} s"
    if left < _HOUR:
        return f"{left // _MINUTE} min {left % _MINUTE} s"
    if left < _DAY:
        return f"{left // _HOUR} h {left % _HOUR // _MINUTE} min"
    return f"{left // _DAY} d {left % _DAY // _HOUR} h"


@dataclass(frozen=True)
class Column:
    """A column of a listing; a *number* stands at its right edge."""

    title: str
    number: bool = False


@dataclass(frozen=True)
class Listing:
    """A table with lines before and after it; *data* is what it shows, for scripts.

    *styles* gives rows a colour, by their number.
    """

    columns: Sequence[Column]
    rows: Sequence[Sequence[str]]
    data: Any
    above: Sequence[str] = ()
    below: Sequence[str] = ()
    styles: Sequence[str] = ()

    def rich(self) -> "RenderableType":
        """Return the listing for a terminal."""
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
        # What a row is about is copied from here, and should not be torn apart.
        name_width = min(WHOLE_MAX, max((len(row[0]) for row in self.rows), default=0))
        for column in self.columns:
            justify: Literal["left", "right"] = "right" if column.number else "left"
            width = name_width if column is self.columns[0] else len(column.title)
            table.add_column(column.title, justify=justify, overflow="fold", min_width=width)
        for number, row in enumerate(self.rows):
            style = self.styles[number] if self.styles else ""
            table.add_row(*map(Text, row), style=style)
        parts: list[RenderableType] = [Text(line) for line in self.above]
        parts += [table] if self.rows else []
        return Group(*parts, *(Text(line) for line in self.below))

    def plain(self) -> str:
        """Return the listing as lines of text, nothing cut."""
        lines = [[column.title for column in self.columns], *self.rows] if self.rows else []
        widths = [max(map(len, cells)) for cells in zip(*lines, strict=True)]
        table = ["  ".join(self._padded(line, widths)).rstrip() for line in lines]
        return "\n".join([*self.above, *table, *self.below])

    def _padded(self, cells: Sequence[str], widths: Sequence[int]) -> list[str]:
        return [
            cell.rjust(width) if column.number else cell.ljust(width)
            for column, cell, width in zip(self.columns, cells, widths, strict=True)
        ]


def show(listing: Listing, as_json: bool) -> None:
    """Print a listing for whoever reads it."""
    if as_json:
        print(json.dumps(listing.data, indent=2))
    elif is_terminal():
        from rich.console import Console

        Console(highlight=False).print(listing.rich())
    else:
        print(listing.plain())


def watch(make: Callable[[], Listing], as_json: bool, *, seconds: float = WATCH_SECONDS) -> None:
    """Show what *make* returns again and again, *seconds* apart, until Ctrl-C."""
    try:
        if is_terminal() and not as_json:
            from rich.live import Live

            with Live(make().rich(), auto_refresh=False) as live:
                while True:
                    time.sleep(seconds)
                    live.update(make().rich(), refresh=True)
        while True:
            listing = make()
            print(json.dumps(listing.data) if as_json else f"{listing.plain()}\n", flush=True)
            time.sleep(seconds)
    except KeyboardInterrupt:
        return
