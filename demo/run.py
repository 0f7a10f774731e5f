"""The main job: 336,776 departures through a pair of brokers whose master is killed halfway.

Producers publish, workers process in transactions and reject cancelled flights; at the end every
departure is either processed or a dead letter. Then Spark reads the journal. Exit code 0 only
when nothing is missing.
"""

import argparse
import json
import subprocess
import sys
import webbrowser
from datetime import datetime
from functools import partial
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any

import course
import flights
import roles
from pair import Pair
from progress import Progress
from tally import Tally

from lockkeeper.client import connect

HERE = Path(__file__).resolve().parent
RESOURCE = HERE.parent / "docs" / "samples" / "broker.yaml"
URL = "failover:(tcp://127.0.0.1:61616)?initialReconnectDelay=50&maxReconnectDelay=500"
PRODUCERS, WORKERS = 2, 2


def main() -> int:
    """Run the demo and return its exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--departures", type=int, default=0, help="only so many of them")
    parser.add_argument("--directory", type=Path, help="where to work (default: demo-run/TIME)")
    parser.add_argument("--no-report", action="store_true", help="leave out Spark's report")
    options = parser.parse_args()
    now = datetime.now().astimezone()
    directory = options.directory or Path("demo-run") / now.strftime("%Y%m%d-%H%M%S")
    directory.mkdir(parents=True)
    total = options.departures or flights.count()
    progress = Progress(total)
    progress.say(f"working in {directory}")
    tally = Tally(total)
    journal = directory / "journal"
    try:
        with Pair(RESOURCE, journal, directory / "brokers.log") as pair, progress:
            course.run(pair, tally, progress, partial(_work, total))
            progress.say("reading the dead letter queues")
            _count_dead_letters(tally)
    except (RuntimeError, TimeoutError) as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    print(tally.summary())
    if not options.no_report:
        _report(journal, directory / "report")
    return 0 if tally.missing == 0 else 1


def _work(total: int, events: roles.Events, finished: Event) -> list[tuple[Any, ...]]:
    producers = [(roles.produce, URL, part, PRODUCERS, total, events) for part in range(PRODUCERS)]
    workers = [(roles.work, URL, number, finished, events) for number in range(WORKERS)]
    return [*producers, *workers]


def _count_dead_letters(tally: Tally) -> None:
    with connect(URL) as connection:
        session = connection.session()
        for origin in ("EWR", "JFK", "LGA"):
            queue = flights.DEAD_LETTER_PREFIX + flights.QUEUES + origin
            for letter in session.browse(queue):
                tally.bury(json.loads(str(letter.body))["departure"])


def _report(journal: Path, out: Path) -> None:
    """Have Spark read the journal and write its report."""
    command = [sys.executable, "-m", "lockkeeper_analytics", str(journal), "--out", str(out)]
    done = subprocess.run(command, check=False)
    if done.returncode:
        raise SystemExit(done.returncode)
    page = (out / "index.html").resolve()
    if sys.stdout.isatty():
        webbrowser.open(page.as_uri())


if __name__ == "__main__":
    sys.exit(main())
