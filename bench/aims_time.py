"""How soon a directory is served, and how long a broker ever pauses."""

import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import others
from aims_backlog import fill
from aims_common import Figure, Settings, broker, wire
from others import HERE, OURS, java_project
from run import Client, result_of, run_load
from scenarios import MIXED_DAY

ACTIVEMQ = "activemq"
START_SECONDS_MAX = 5.0
PAUSE_MILLISECONDS_MAX = 20.0


def start(settings: Settings) -> Iterator[Figure]:
    """Start with messages that wait, until the first is delivered, beside ActiveMQ."""
    with broker(settings.directory / "filler") as running:
        fill(running, settings.count)
    journal = settings.directory / "filler" / "data"
    _copy(journal, settings.directory / OURS / "data")
    for again in ("first", "once more"):
        seconds = _first_message(OURS, settings.directory / OURS)
        yield Figure(f"{OURS}, {again}", seconds, "s", START_SECONDS_MAX)
    if others.missing(ACTIVEMQ):
        return
    _copy(journal, settings.directory / ACTIVEMQ / "data" / "kahadb")
    for index in ("without its index", "with its index"):
        yield Figure(
            f"{ACTIVEMQ}, {index}", _first_message(ACTIVEMQ, settings.directory / ACTIVEMQ), "s"
        )


def _copy(journal: Path, place: Path) -> None:
    """Copy the journal's files, and nothing that only ours has beside them."""
    place.mkdir(parents=True)
    for file in journal.glob("db-*.log"):
        shutil.copy(file, place)


def _first_message(kind: str, place: Path) -> float:
    """Return how many seconds after its start a broker has delivered a message."""
    began = time.monotonic()
    running = others.start(kind, place)
    try:
        wire(running, "first").consume(prefetch=1).take(1)
        return time.monotonic() - began
    finally:
        running.running.stop()


def pauses(settings: Settings) -> Iterator[Figure]:
    """Let the mixed day pass, and ask for an answer every few milliseconds."""
    command = ["java", "-Xmx512M", "-cp", java_project.build(HERE / "java")]
    client = Client([*command, "dev.lockkeeper.bench.Load"], 5, 0, settings.count)
    running = others.start(OURS, settings.directory / OURS, scheduler=True)
    try:
        found = result_of(run_load(running, client, MIXED_DAY), OURS, MIXED_DAY, 1)
    finally:
        running.running.stop()
    assert found.pause_us is not None and found.stall_us is not None
    assert found.p99_us is not None
    yield Figure("longest pause", found.pause_us / 1000, "ms", PAUSE_MILLISECONDS_MAX)
    yield Figure("the prober itself stood still for", found.stall_us / 1000, "ms at most")
    yield Figure("send to listener, 99 %", found.p99_us / 1000, "ms")
    yield Figure("CPU", found.cpu_us, "µs a message")
    yield Figure("memory at most", found.peak_mb, "MB")
