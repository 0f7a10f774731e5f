"""The departures as a stream, read by three groups, one of them in order; the master is killed.

Two producers publish the 336,776 departures, each aircraft's into one partition. Halfway the master
is killed. Exit code 0 only when no group misses a departure, and order was kept.
"""

import argparse
import sys
from datetime import datetime
from functools import partial
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any

import course
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
            course.run(pair, tally, progress, partial(_work, total))
            progress.say("every group had every departure")
    except (RuntimeError, TimeoutError) as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    text, is_well = tally.verdict(ORDERLY)
    print(text)
    return 0 if is_well else 1


def _work(total: int, events: roles.Events, finished: Event) -> list[tuple[Any, ...]]:
    producers = [
        (stream_roles.publish, ADDRESS, part, PRODUCERS, total, events) for part in range(PRODUCERS)
    ]
    members = [
        (stream_roles.read, ADDRESS, group, group == ORDERLY, finished, events)
        for group, count in MEMBERS.items()
        for _ in range(count)
    ]
    return [*producers, *members]


if __name__ == "__main__":
    sys.exit(main())
