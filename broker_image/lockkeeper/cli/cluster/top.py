"""`kubectl lockkeeper top`: how fast messages come and go, destination by destination."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from lockkeeper.cli.admin import AdminError, Status, ask
from lockkeeper.cli.cluster.asking import admin_endpoint
from lockkeeper.cli.cluster.kubectl import Kubectl, KubectlError
from lockkeeper.cli.cluster.objects import BROKERS, master_of, pods_of
from lockkeeper.cli.destinations import name_as_taken
from lockkeeper.cli.errors import CommandError
from lockkeeper.cli.output import Column, Listing, counted, show, size_text, watch

COLUMNS = (
    Column("Destination"),
    *(Column(title, number=True) for title in ("In/s", "Out/s", "Depth", "Consumers", "Memory")),
)
UNKNOWN = "-"


@dataclass(frozen=True)
class Sample:
    """Figures of the master at a *moment*, in seconds of a clock that never goes back."""

    moment: float
    status: Status
    destinations: Sequence[dict[str, Any]]

    @property
    def counted_by(self) -> tuple[str, float]:
        """The process and term that count: those of another process or term began at zero."""
        return (self.status["replica"], self.status["since"])


class Meter:
    """Asks the master of a Broker every *interval* seconds, whichever pod that is."""

    def __init__(self, kubectl: Kubectl, name: str, interval: float) -> None:
        self._kubectl, self._name, self._interval = kubectl, name, interval
        self._way = ExitStack()
        self._address = ""
        self._last: Sample | None = None

    def read(self) -> tuple[Sample, Sample | None]:
        """Return the figures of now, and those of an interval ago: None where the master changed.

        Raises CommandError where there is no master, or it does not answer.
        """
        if self._last is None:
            self._last = self._sample()
        before = self._last
        time.sleep(max(0.0, before.moment + self._interval - time.monotonic()))
        self._last = None
        now = self._last = self._sample()
        return now, before if before.counted_by == now.counted_by else None

    def close(self) -> None:
        """Close the way to the master."""
        self._address = ""
        self._way.close()

    def _sample(self) -> Sample:
        try:
            return self._asked()
        except AdminError:
            # Another pod may be the master now.
            self.close()
            return self._asked()

    def _asked(self) -> Sample:
        if not self._address:
            pod = master_of(pods_of(self._kubectl, self._name), self._name)
            way = admin_endpoint(self._kubectl, self._name, pod)
            self._address = self._way.enter_context(way)
        status = ask(self._address, "status")
        if status["role"] != "master":
            raise AdminError(f"{status['replica']} is {status['role']}")
        found = ask(self._address, "destinations")["destinations"]
        return Sample(time.monotonic(), status, found)


def show_top(
    kubectl: Kubectl, name: str, interval: float, lines_max: int, *, once: bool, as_json: bool
) -> None:
    """Show the rates again and again until Ctrl-C, or *once*.

    Raises CommandError where the first look fails; what fails later is shown.
    """
    kubectl.get(BROKERS, name)
    with _meter(kubectl, name, interval) as meter:
        first = listing(name, *meter.read(), lines_max)
        if once:
            show(first, as_json)
        else:
            watch(_going_on(meter, name, lines_max, interval, first), as_json, seconds=0)


@contextmanager
def _meter(kubectl: Kubectl, name: str, interval: float) -> Iterator[Meter]:
    meter = Meter(kubectl, name, interval)
    try:
        yield meter
    finally:
        meter.close()


def _going_on(
    meter: Meter, name: str, lines_max: int, interval: float, first: Listing
) -> Callable[[], Listing]:
    """Return what gives *first*, and later what is then: a fail-over does not end it."""
    waiting = [first]

    def make() -> Listing:
        if waiting:
            return waiting.pop()
        try:
            return listing(name, *meter.read(), lines_max)
        except (CommandError, KubectlError) as error:
            time.sleep(interval)
            data = {"broker": name, "error": str(error)}
            return Listing(COLUMNS, (), data, below=(str(error),))

    return make


def listing(name: str, now: Sample, before: Sample | None, lines_max: int) -> Listing:
    """Return destinations, the busiest first; rates need figures of *before*."""
    seconds = now.moment - before.moment if before is not None else None
    found = sorted(rates(now, before), key=_busiest_first)
    hidden = len(found) - lines_max
    memory = now.status["memory"]
    heading = (
        f"{name}  {now.status['replica']} is the master, "
        f"{counted(now.status['connections'], 'client')}, "
        f"memory {size_text(memory['used'])} of {size_text(memory['limit'])}"
    )
    data = {
        "broker": name,
        "master": now.status["replica"],
        "seconds": None if seconds is None else round(seconds, 3),
        "connections": now.status["connections"],
        "memory": memory,
        "destinations": found,
    }
    below = (f"and {counted(hidden, 'destination')} more",) if hidden > 0 else ()
    if not found:
        below = ("There are no destinations.",)
    return Listing(COLUMNS, [_row(each) for each in found[:lines_max]], data, (heading,), below)


def rates(now: Sample, before: Sample | None) -> Iterator[dict[str, Any]]:
    """Yield for each destination its figures, and messages a second; None where not known."""
    known = {} if before is None else {name_as_taken(each): each for each in before.destinations}
    for each in now.destinations:
        name = name_as_taken(each)
        last = known.get(name, {})
        speed = {}
        for title, figure in (("inPerSecond", "enqueued"), ("outPerSecond", "dequeued")):
            count = each[figure] - last.get(figure, 0)
            # One that was deleted and came again has begun at nothing.
            count = each[figure] if count < 0 else count
            seconds = None if before is None else now.moment - before.moment
            speed[title] = None if not seconds else round(count / seconds, 1)
        kept = {key: each[key] for key in ("kind", "depth", "consumers", "memoryBytes")}
        yield {"name": name, **speed, **kept}


def _busiest_first(view: dict[str, Any]) -> tuple[float, int, str]:
    speed = (view["inPerSecond"] or 0) + (view["outPerSecond"] or 0)
    return (-speed, -view["depth"], view["name"])


def _row(view: dict[str, Any]) -> list[str]:
    speeds = (view["inPerSecond"], view["outPerSecond"])
    return [
        view["name"],
        *(UNKNOWN if each is None else f"{each:,.1f}" for each in speeds),
        f"{view['depth']:,}",
        f"{view['consumers']:,}",
        size_text(view["memoryBytes"]),
    ]
