"""Schedule of a message, read from its properties (ActiveMQ's ScheduledMessage)."""

from collections.abc import Mapping
from datetime import datetime, tzinfo
from typing import NamedTuple

from cronsim import CronSim, CronSimError

from lockkeeper.broker.errors import InvalidScheduleError
from lockkeeper.message.primitives import Value

DELAY, PERIOD = "AMQ_SCHEDULED_DELAY", "AMQ_SCHEDULED_PERIOD"
REPEAT, CRON = "AMQ_SCHEDULED_REPEAT", "AMQ_SCHEDULED_CRON"
PROPERTIES = (DELAY, PERIOD, REPEAT, CRON)
MARK = b"AMQ_SCHEDULED_"
"""Bytes of each message with a schedule: they are looked for faster than properties are read."""
FOR_EVER = -1
MILLISECONDS_MAX = 1 << 53


class Schedule(NamedTuple):
    """Times at which a message is due, in ms; `repeat` counts deliveries after the first one.

    With `cron`, every time it names begins a schedule of the other fields.
    """

    delay: int
    period: int
    repeat: int
    cron: str

    @property
    def is_wanted(self) -> bool:
        """Tell whether anything is to be done later at all."""
        return bool(self.cron) or self.delay > 0 or self.period > 0

    def first_due(self, now: int, zone: tzinfo) -> int:
        """Return when the first delivery is due, at *now* (ms since the epoch)."""
        if self.cron:
            return next_cron(self.cron, now, zone)
        return now + (self.delay if self.delay > 0 else self.period)


def read_schedule(properties: Mapping[str, Value]) -> Schedule:
    """Return what the properties of a message ask for. Raises InvalidScheduleError."""
    cron = properties.get(CRON)
    schedule = Schedule(
        _number(properties, DELAY, 0),
        _number(properties, PERIOD, 0),
        _number(properties, REPEAT, FOR_EVER),
        str(cron).strip() if cron is not None else "",
    )
    if schedule.cron:
        _check_cron(schedule.cron)
    return schedule


def next_cron(expression: str, now: int, zone: tzinfo) -> int:
    """Return the next time after *now* (ms since the epoch) that a cron expression names.

    Raises InvalidScheduleError when there is none within fifty years.
    """
    times = CronSim(expression, datetime.fromtimestamp(now / 1000, zone))
    try:
        return round(next(times).timestamp() * 1000)
    except StopIteration:
        raise InvalidScheduleError(f"{CRON}: {expression!r} never comes") from None


def _check_cron(expression: str) -> None:
    try:
        CronSim(expression, datetime.fromtimestamp(0))
    except (CronSimError, ValueError) as error:
        raise InvalidScheduleError(
            f"{CRON}: {error} in {expression!r}; it has minute, hour, day of month, month and "
            "day of week"
        ) from None


def _number(properties: Mapping[str, Value], name: str, least: int) -> int:
    value = properties.get(name)
    if value is None:
        return 0
    try:
        number = int(value) if isinstance(value, int | str) else None
    except ValueError:
        number = None
    if number is None or not least <= number <= MILLISECONDS_MAX:
        raise InvalidScheduleError(f"{name}: a whole number of at least {least}, not {value!r}")
    return number
