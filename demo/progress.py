"""Live progress: bars on a terminal, a plain line every few seconds elsewhere."""

import time

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
from rich.progress import Progress as Bars
from tally import Accounts

PLAIN_SECONDS = 5.0


class Progress:
    """Shows how far the departures have come."""

    def __init__(self, total: int) -> None:
        self._console = Console(highlight=False)
        self._bars = Bars(
            TextColumn("{task.description:10}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]:>7,.0f}/s"),
            console=self._console,
            disable=not self._console.is_terminal,
        )
        self._published = self._bars.add_task("published", total=total, rate=0.0)
        self._done = self._bars.add_task("processed", total=total, rate=0.0)
        self._began = time.monotonic()
        self._plain_at = self._began

    def __enter__(self) -> "Progress":
        """Begin to show."""
        self._bars.start()
        self._began = time.monotonic()
        return self

    def __exit__(self, *_: object) -> None:
        """Leave the last state on the screen."""
        self._bars.stop()

    def say(self, text: str) -> None:
        """Print a line, with the time since the beginning."""
        self._console.print(f"[{time.monotonic() - self._began:6.1f} s] {text}", markup=False)

    def show(self, tally: Accounts) -> None:
        """Show the present state."""
        seconds = max(0.001, time.monotonic() - self._began)
        for task, count in ((self._published, tally.published), (self._done, tally.done)):
            self._bars.update(task, completed=count, rate=count / seconds)
        if self._console.is_terminal or time.monotonic() - self._plain_at < PLAIN_SECONDS:
            return
        self._plain_at = time.monotonic()
        self.say(
            f"{tally.published} published, {tally.done} processed ({tally.done / seconds:.0f}/s)"
        )
