"""The departures as a stream, read by three groups, one of them in order; the master is killed.

Two producers publish the 336,776 departures, each aircraft's into one partition. Halfway the master
is killed. Exit code 0 only when no group misses a departure, and order was kept.
"""

import argparse
import multiprocessing
import sys
import time
from datetime import datetime
from pathlib import Path

import flights
import roles
import stream_roles
from pair import Pair
from progress import Progress
from stream_tally import StreamTally

HERE = Path(__file__).resolve().parent
RESOURCE = HERE.parent / "docs" / "samples" / "streams.yaml"
ADDRESS = "127.0.0.1:9876"
PRODUCERS = 2
ORDERLY = "boards"
MEMBERS = {ORDERLY: 2, "billing": 1, "archive": 1}
STALLED_SECONDS = 120.0


def main() -> int:
    """Run the demo and return its exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--departures", type=int, default=0, help="only so many of them")
    parser.add_argument("--directory", type=Path, help="where to work (default: demo-run/TIME)")
    options = parser.parse_args()
    now = datetime.now().astimezone()
    directory = options.directory or Path("demo-run") / now.strftime("%Y%m%d-%H%M%S")
    directory.mkdir(parents=True)
    total = options.departures or flights.count()
    progress = Progress(total)
    progress.say(f"working in {directory}")
    tally = StreamTally(total, list(MEMBERS))
    try:
        with Pair(RESOURCE, directory / "journal", directory / "brokers.log") as pair, progress:
            _flow(pair, tally, progress)
    except (RuntimeError, TimeoutError) as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    text, is_well = tally.verdict(ORDERLY)
    print(text)
    return 0 if is_well else 1


def _flow(pair: Pair, tally: StreamTally, progress: Progress) -> None:
    """Start producers and groups, kill the master halfway, and wait for the last departure."""
    context = multiprocessing.get_context("spawn")
    events: roles.Events = context.Queue()
    finished = context.Event()
    work = [
        (stream_roles.publish, ADDRESS, part, PRODUCERS, tally.total, events)
        for part in range(PRODUCERS)
    ] + [
        (stream_roles.read, ADDRESS, group, group == ORDERLY, finished, events)
        for group, members in MEMBERS.items()
        for _ in range(members)
    ]
    processes = [context.Process(target=roles.guarded, args=each, daemon=True) for each in work]
    for process in processes:
        process.start()
    killed_at: float | None = None
    took_over = False
    try:
        while not tally.is_complete():
            progress.show(tally)
            tally.take(events, STALLED_SECONDS)
            if killed_at is None and tally.done >= tally.total // 2:
                progress.say(f"halfway: killing the master {pair.kill_master()} with SIGKILL")
                killed_at = time.monotonic()
            elif killed_at is not None and not took_over:
                master = pair.master()
                if master is not None:
                    took_over = True
                    seconds = time.monotonic() - killed_at
                    progress.say(f"{master['replica']} has taken over after {seconds:.1f} s")
        progress.say("every group had every departure")
    finally:
        finished.set()
        progress.show(tally)
        for process in processes:
            process.join(20)
    tally.drain(events)


if __name__ == "__main__":
    sys.exit(main())
