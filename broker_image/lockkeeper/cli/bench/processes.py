"""Processes of a bench: Python uses one core in each, and a broker is quicker than one client."""

import multiprocessing
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from enum import Enum
from multiprocessing.connection import Connection as Pipe
from multiprocessing.process import BaseProcess

from lockkeeper.cli.bench.figures import Figures
from lockkeeper.cli.bench.load import Load
from lockkeeper.cli.bench.workers import BenchConsumer, BenchProducer, Worker
from lockkeeper.cli.errors import CommandError, explain

END_SECONDS = 5.0
"""How long workers may take to end before their process ends without them."""


class Order(Enum):
    """Orders to a process, which answers each with a report."""

    CONNECT = "connect"
    BEGIN = "begin"
    LOOK = "look"
    END_PRODUCERS = "end producers"
    END = "end"


@dataclass
class Report:
    """Figures since the last report, and whether producers are done; an error ends the bench."""

    figures: Figures = field(default_factory=Figures)
    is_sent: bool = True
    error: tuple[str, int] | None = None

    def merge(self, other: "Report") -> None:
        """Add what another process reports."""
        self.figures.merge(other.figures)
        self.is_sent = self.is_sent and other.is_sent
        self.error = self.error or other.error


class Processes:
    """All processes of a bench, asked together."""

    def __init__(self, pipes: Sequence[Pipe]) -> None:
        self._pipes = pipes

    def ask(self, order: Order) -> Report:
        """Give an order to all; return their reports as one.

        Raises CommandError with what one of them failed of, or when one is gone.
        """
        whole = Report()
        try:
            for pipe in self._pipes:
                pipe.send(order)
            for pipe in self._pipes:
                whole.merge(pipe.recv())
        except (EOFError, OSError) as error:
            raise CommandError("a process of the bench has ended by itself") from error
        if whole.error is not None:
            raise CommandError(*whole.error)
        return whole


@contextmanager
def processes_of(load: Load, count: int) -> Iterator[Processes]:
    """Give *count* processes, among which the workers of *load* are spread; end them afterwards."""
    context = multiprocessing.get_context("spawn")
    running: list[tuple[BaseProcess, Pipe]] = []
    try:
        for number in range(count):
            ours, theirs = context.Pipe()
            shares = [load.share_of(each) for each in range(number, load.producers, count)]
            # From the other end, so that one producer and one consumer do not share a process.
            consumers = len(range(count - 1 - number, load.consumers, count))
            process: BaseProcess = context.Process(
                target=_serve, args=(load, shares, consumers, theirs), daemon=True
            )
            process.start()
            theirs.close()
            running.append((process, ours))
        yield Processes([pipe for _, pipe in running])
    finally:
        for process, pipe in running:
            pipe.close()
            process.join(END_SECONDS)
            process.kill()


def _serve(load: Load, shares: list[int | None], consumers: int, pipe: Pipe) -> None:
    """Obey the orders that come by *pipe* until it is closed."""
    # Ctrl-C reaches the whole group of processes; the first one says what comes of it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    producers = [BenchProducer(load, share) for share in shares]
    workers: list[Worker] = [*producers, *(BenchConsumer(load) for _ in range(consumers))]
    with suppress(EOFError, OSError):
        while True:
            _obey(pipe.recv(), producers, workers)
            pipe.send(_report(producers, workers))


def _obey(order: Order, producers: Sequence[BenchProducer], workers: Sequence[Worker]) -> None:
    match order:
        case Order.CONNECT:
            for worker in workers:
                worker.start()
            for worker in workers:
                worker.is_ready.wait()
        case Order.BEGIN:
            for worker in workers:
                worker.begin()
        case Order.END_PRODUCERS:
            for producer in producers:
                producer.end()
        case Order.END:
            for worker in workers:
                worker.end()
            deadline = time.monotonic() + END_SECONDS
            while time.monotonic() < deadline and not all(worker.is_over for worker in workers):
                time.sleep(0.01)


def _report(producers: Sequence[BenchProducer], workers: Sequence[Worker]) -> Report:
    # Whether a worker is over is asked first: its last figures are there then.
    is_sent = all(producer.is_over for producer in producers)
    whole = Report(is_sent=is_sent)
    for worker in workers:
        whole.figures.merge(worker.take_figures())
    errors = [worker.error for worker in workers if worker.error is not None]
    # A mistake of the person's comes first: other errors may have followed from it.
    errors.sort(key=lambda error: not isinstance(error, CommandError))
    if errors:
        whole.error = explain(errors[0])
    return whole
