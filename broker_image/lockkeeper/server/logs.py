"""Log lines as values: a process writes them as JSON, whoever started it reads them back."""

import json
import logging
import traceback
from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class LogLine:
    """One thing a process says: when (seconds since 1970), how grave, what.

    *role* is set when the line tells that the process has changed its role.
    """

    time: float
    level: str
    text: str
    role: str | None = None

    def to_json(self) -> str:
        """Return the line as one line of JSON."""
        return json.dumps({name: value for name, value in asdict(self).items() if value})


def log_line(record: logging.LogRecord) -> LogLine:
    """Return what a record of `logging` says, with the traceback it may carry."""
    text = record.getMessage()
    if record.exc_info and record.exc_info[0] is not None:
        text = "\n".join([text, "".join(traceback.format_exception(*record.exc_info)).rstrip()])
    role = getattr(record, "role", None)
    return LogLine(round(record.created, 3), record.levelname.lower(), text, role)


def read_line(text: str, now: float) -> LogLine:
    """Return the line that *text* is the JSON of.

    What is no such JSON was printed by something that does not log: it is grave enough to show.
    """
    try:
        found = json.loads(text)
        return LogLine(
            float(found["time"]), str(found["level"]), str(found["text"]), found.get("role")
        )
    except (ValueError, TypeError, KeyError, AttributeError):
        return LogLine(now, "error", text.removeprefix("lockkeeper: "))


class JsonFormatter(logging.Formatter):
    """Formats records as JSON, a line each."""

    def format(self, record: logging.LogRecord) -> str:
        """Return *record* as a line of JSON."""
        return log_line(record).to_json()
