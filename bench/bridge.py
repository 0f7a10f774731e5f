"""Measures one bridge: a backlog of persistent messages goes to a consumer of the other broker.

Every round runs each pair of brokers once, in an order that changes from round to round. Printed
are messages/s from the first that arrives to the last, and the CPU of both brokers per message, as
medians, and as ratios of what ActiveMQ does between two of its own.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import NamedTuple

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent / "tests" / "interop" / each) for each in ("..", ".", "network")]

from loads import ANSWER, NUMBER, Socket, Wire  # noqa: E402
from measuring import usage  # noqa: E402
from network_brokers import Member, Network, missing  # noqa: E402

from lockkeeper.message.destination import queue  # noqa: E402

PAIRS = ("ours-ours", "ours-activemq", "activemq-ours", "activemq-activemq")
REFERENCE = PAIRS[-1]
NAME, SENDER = "BRIDGE", "ID:bridge-sender"
PATIENCE_SECONDS = 600.0
FILLED_AT_ONCE = 500
WINDOW = 100


class Run(NamedTuple):
    """One run of one pair: messages/s, and µs of both brokers' CPU per message."""

    rate: float
    cpu_us: float


def measure(pair: str, messages: int, directory: Path) -> Run:
    """Have a backlog of one broker consumed at the other one."""
    near_kind, far_kind = pair.split("-")
    with Network(directory) as network:
        near, far = network.add(near_kind, "near"), network.add(far_kind, "far")
        network.bridge("near", "far")
        network.start()
        _fill(near, messages)
        before = _cpu(near) + _cpu(far)
        consumer = _wire(far, "ID:bridge-taker")
        consumer.consume(prefetch=10 * WINDOW)
        # The way there is no part of it: the demand, and the first messages.
        consumer.take_and_acknowledge(WINDOW)
        begun = time.monotonic()
        for _ in range(messages // WINDOW - 1):
            consumer.take_and_acknowledge(WINDOW)
        seconds = time.monotonic() - begun
        used = _cpu(near) + _cpu(far) - before
        consumer.stop()
        consumer.close()
    return Run((messages - WINDOW) / seconds, 1e6 * used / messages)


def _wire(member: Member, name: str) -> Wire:
    return Wire(Socket(member.port, PATIENCE_SECONDS), name, queue(NAME), SENDER).enter()


def _fill(member: Member, messages: int) -> None:
    producer = _wire(member, SENDER)
    frame = producer.message(persistent=True, answered=True)
    for first in range(1, messages + 1, FILLED_AT_ONCE):
        numbers = range(first, min(first + FILLED_AT_ONCE, messages + 1))
        producer.write(b"".join(frame.replace(NUMBER, each.to_bytes(8, "big")) for each in numbers))
        producer.read(ANSWER, len(numbers))
    producer.close()


def _cpu(member: Member) -> float:
    assert member.running is not None
    return usage(member.running.process.pid).cpu


def main() -> int:
    """See the module's text."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", nargs="*", choices=PAIRS, default=list(PAIRS))
    parser.add_argument("--messages", type=int, default=20_000, help="a multiple of 100")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    pairs = [pair for pair in arguments.pairs if missing(*pair.split("-")) is None]
    found: dict[str, list[Run]] = {pair: [] for pair in pairs}
    for number in range(arguments.rounds):
        for pair in pairs if number % 2 else reversed(pairs):
            with tempfile.TemporaryDirectory(prefix="bridge-") as directory:
                run = measure(pair, arguments.messages, Path(directory) / "network")
            found[pair].append(run)
            print(f"{pair}: {run.rate:,.0f}/s, {run.cpu_us:,.0f} µs", file=sys.stderr, flush=True)
    print("| from - to | messages/s | ratio | CPU µs per message | ratio |\n|---|---|---|---|---|")
    for pair, runs in found.items():
        print(_row(pair, runs, found.get(REFERENCE, runs)))
    return 0


def _row(pair: str, runs: list[Run], reference: list[Run]) -> str:
    cells = []
    for figure in ("rate", "cpu_us"):
        value, theirs = (median(getattr(run, figure) for run in each) for each in (runs, reference))
        cells += [f"{value:,.0f}", f"{value / theirs:.2f}"]
    return f"| {pair} | {' | '.join(cells)} |"


if __name__ == "__main__":
    sys.exit(main())
