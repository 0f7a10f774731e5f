"""The main job: 336,776 departures through a pair of brokers whose master is killed halfway.

Producers publish, workers process in transactions and reject cancelled flights; at the end every
departure is either processed or a dead letter. Then Spark reads the journal. Exit code 0 only
when nothing is missing.
"""

import argparse
import json
import multiprocessing
import subprocess
import sys
import time
import webbrowser
from datetime import datetime
from pathlib import Path

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
STALLED_SECONDS = 60.0


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
            _flow(pair, tally, progress)
            progress.say("reading the dead letter queues")
            _count_dead_letters(tally)
    except (RuntimeError, TimeoutError) as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    print(tally.summary())
    if not options.no_report:
        _report(journal, directory / "report")
    return 0 if tally.missing == 0 else 1


def _flow(pair: Pair, tally: Tally, progress: Progress) -> None:
    """Start producers and workers, kill the master halfway, and wait for the last departure."""
    context = multiprocessing.get_context("spawn")
    events: roles.Events = context.Queue()
    finished = context.Event()
    processes = [
        context.Process(
            target=roles.guarded,
            args=(roles.produce, URL, part, PRODUCERS, tally.total, events),
            daemon=True,
        )
        for part in range(PRODUCERS)
    ] + [
        context.Process(
            target=roles.guarded, args=(roles.work, URL, number, finished, events), daemon=True
        )
        for number in range(WORKERS)
    ]
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
    finally:
        finished.set()
        progress.show(tally)
        for process in processes:
            process.join(10)
    tally.drain(events)


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
