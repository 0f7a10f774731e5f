"""Log lines of brokers for people: time, who, what; plain where nobody looks on."""

import errno
import logging
import os
import time
from contextlib import suppress

from rich.console import Console
from rich.text import Text

from lockkeeper.cli.log_formats import LogFormat
from lockkeeper.server.logs import JsonFormatter, LogLine, log_line
from lockkeeper.server.roles import ENDED, MASTER

COLOURS = ("cyan", "magenta", "yellow", "blue", "green", "red")
LEVEL_STYLES = {"warning": "yellow", "error": "bold red", "critical": "bold red"}


class LogConsole(Console):
    """A console for lines that come while an event loop runs."""

    def __init__(self, stderr: bool = False) -> None:
        super().__init__(stderr=stderr, highlight=False)

    def on_broken_pipe(self) -> None:
        """Raise what a loop's tasks can fail with, instead of leaving the process at once."""
        self.quiet = True
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))


def render(line: LogLine, name: str, colour: str) -> Text:
    """Return *line* of the replica called *name* as a line for a terminal or a file."""
    clock = time.strftime("%H:%M:%S", time.localtime(line.time))
    style = LEVEL_STYLES.get(line.level, "bold green" if line.role == MASTER else "")
    return Text.assemble((clock, "dim"), " ", (name, colour), " ", (line.text, style))


def print_line(console: Console, line: LogLine, name: str, colour: str) -> None:
    """Print *line*, never cut, whatever characters it holds."""
    console.print(render(line, name, colour), soft_wrap=True)


class ConsoleHandler(logging.Handler):
    """Shows what one broker logs on standard error."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._replica = name
        self._console = LogConsole(stderr=True)

    def emit(self, record: logging.LogRecord) -> None:
        """Print a record; a broker serves on when nobody can read what it says."""
        with suppress(OSError):
            print_line(self._console, log_line(record), self._replica, COLOURS[0])


def log_to_stderr(name: str, chosen: LogFormat) -> None:
    """Make this process, the replica called *name*, write its log to standard error."""
    if chosen is LogFormat.TEXT:
        handler: logging.Handler = ConsoleHandler(name)
    else:
        handler = logging.StreamHandler()
        handler.setFormatter(JsonFormatter())
    logging.basicConfig(level=logging.INFO, handlers=[handler])


class ReplicasView:
    """Display of `up`: lines of its replicas, and the time without a master."""

    def __init__(self, name: str, console: Console) -> None:
        self._name = name
        self._console = console
        self._master: int | None = None
        self._lost_at: float | None = None

    def show_line(self, replica: int, line: LogLine) -> None:
        """Show a line of one replica."""
        text = line.text
        if line.role == MASTER:
            text = self._took_over(replica, line.time)
        elif line.role == ENDED and replica == self._master:
            self._lost_at = line.time
            text = f"was the master, {text}"
        shown = LogLine(line.time, line.level, text, line.role)
        colour = COLOURS[replica % len(COLOURS)]
        print_line(self._console, shown, f"{self._name}-{replica}", colour)

    def _took_over(self, replica: int, now: float) -> str:
        lost_at, self._lost_at, self._master = self._lost_at, None, replica
        if lost_at is None:
            return "is the master"
        return f"is the master now, after {now - lost_at:.1f} s"
