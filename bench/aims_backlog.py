"""Memory and speed of a broker in which very many messages wait."""

import time
from collections.abc import Iterator

from aims_common import Figure, Settings, broker, memory, wire
from loads import ANSWER, NUMBER
from others import Measured

MEGABYTE = 1e6
FEW = 50_000
SENT_AT_ONCE = 100
TAKEN_AT_ONCE = 100
PREFETCH = 1000
# So many may be in memory of so many that wait, in MB.
BARS = ((1_000_000, 300.0), (10_000_000, 400.0))
SHARE_OF_F = 0.6


def bar(count: int) -> float | None:
    """Return how many MB a broker may take in which so many messages wait."""
    return next((most for waiting, most in BARS if count <= waiting), None)


def measure(settings: Settings) -> Iterator[Figure]:
    """Let messages wait that were sent; start with them; then drain them all."""
    place = settings.directory / "lockkeeper"
    with broker(settings.directory / "few") as running:
        fill(running, FEW)
        quick = drain(running, FEW)
        yield Figure(f"{FEW:,} drained", quick, "messages/s")
    most = bar(settings.count)
    with broker(place) as running:
        process = running.running.process.pid
        before = memory(process)
        rate = fill(running, settings.count)
        yield Figure("sent", rate, "messages/s")
        yield Figure("memory of an empty broker", before / MEGABYTE, "MB")
        yield Figure("memory with all that were sent", memory(process) / MEGABYTE, "MB", most)
        yield Figure("at most", memory(process, "VmHWM") / MEGABYTE, "MB", most)
        running.running.stop()
        began = time.monotonic()
        running.running.start()
        process = running.running.process.pid
        yield Figure("started with them", time.monotonic() - began, "s")
        yield Figure("memory then", memory(process) / MEGABYTE, "MB", most)
        rate = drain(running, settings.count)
        yield Figure("drained", rate, "messages/s")
        yield Figure("of the rate of few", rate / quick, "ratio", least=SHARE_OF_F)
        yield Figure("at most, until then", memory(process, "VmHWM") / MEGABYTE, "MB", most)


def fill(running: Measured, count: int) -> float:
    """Let so many persistent messages wait; returns how many were sent a second."""
    producer = wire(running, "producer")
    frame = producer.message(persistent=True, answered=True)
    began = time.monotonic()
    for first in range(1, count + 1, SENT_AT_ONCE):
        numbers = range(first, min(first + SENT_AT_ONCE, count + 1))
        producer.write(b"".join(frame.replace(NUMBER, each.to_bytes(8, "big")) for each in numbers))
        producer.read(ANSWER, len(numbers))
    producer.close()
    return count / (time.monotonic() - began)


def drain(running: Measured, count: int) -> float:
    """Consume all messages; returns how many came a second. Raises RuntimeError."""
    consumer = wire(running, "consumer").consume(PREFETCH)
    began = time.monotonic()
    for first in range(0, count, TAKEN_AT_ONCE):
        consumer.take_and_acknowledge(min(TAKEN_AT_ONCE, count - first))
    took = time.monotonic() - began
    consumer.stop()
    consumer.close()
    return count / took
