"""The application that Spark runs in a cluster: one analysis, from a journal to its results."""

import argparse
import os
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from pyspark import SparkContext
from pyspark.sql import SparkSession

from lockkeeper_analytics.agreements.breaches import told
from lockkeeper_analytics.errors import AnalyticsError
from lockkeeper_analytics.job import analyze
from lockkeeper_analytics.pods.delivery import deliver
from lockkeeper_analytics.pods.kept import kept_in
from lockkeeper_analytics.pods.progress import Progress, Tasks, own_pod

ERROR_EXIT = 1


def parser() -> argparse.ArgumentParser:
    """Return what knows the arguments."""
    found = argparse.ArgumentParser("application.py", description=__doc__)
    add = found.add_argument
    add("--journal", required=True, action="append", help="directory or URL; may be repeated")
    add("--out", required=True, help="directory or URL for results: each run has a folder there")
    add("--history", default="", help="keep records in this folder or URL, and analyse all there")
    add(
        "--broker", default="", help="name of the journal's records there; absent: as of its folder"
    )
    add("--run", default="", help="name of that folder; absent: $LOCKKEEPER_RUN, else the time")
    add("--report", action="append", default=[], help="only this one; may be repeated")
    add("--rule", action="append", default=[], help="a limit, 'p99 > 5s for 10m'; may be repeated")
    add("--bodies", action="store_true", help="fields of bodies, too, without their values")
    add("--mask", action="append", default=[], help="hide these fields; may be repeated")
    add("--beside", default="", help="folder of a former run; absent: the latest one in --out")
    add("--since", default="", help="only from then on: ISO 8601, ms, or how long ago: 24h")
    add("--until", default="", help="only up to then, in the same way")
    add("--destination", default="", help="only these: names or wildcards, commas between")
    add("--skip-corrupt", action="store_true", help="leave out damaged batches, do not stop")
    return found


def run_name(given: str, environment: Mapping[str, str], now: datetime) -> str:
    """Return the name of the run's folder."""
    return given or environment.get("LOCKKEEPER_RUN") or now.strftime("%Y%m%dT%H%M%SZ")


def main(arguments: Sequence[str]) -> int:
    """Analyse, and return the exit code; errors of this package become the last line of the log."""
    asked = parser().parse_args(arguments)
    try:
        with Progress(own_pod(os.environ)) as progress:
            progress.tell("starting Spark")
            session = SparkSession.builder.getOrCreate()
            context = session.sparkContext
            progress.counted_by(lambda: _tasks(context))
            place = _analyze(asked, session, progress)
        # Not before nobody counts tasks any more: a Spark that has ended has none to ask for.
        session.stop()
    except AnalyticsError as error:
        print(f"lockkeeper: {error}", file=sys.stderr, flush=True)
        return ERROR_EXIT
    print(place, flush=True)
    return 0


def _analyze(asked: argparse.Namespace, session: SparkSession, progress: Progress) -> str:
    """Return where the results are; they are made here, and delivered when they are whole."""
    now = datetime.now(UTC)
    scratch = Path(tempfile.mkdtemp(prefix="lockkeeper-results-"))
    # Not the scratch itself, which nobody else may read: the run's folder gets the rights of this.
    local = scratch / "results"
    journals = asked.journal
    try:
        if asked.history:
            progress.tell("keeping records")
            journals = kept_in(asked.history, journals, asked.broker, asked.skip_corrupt)
        outcome = analyze(
            journals,
            local,
            destination=asked.destination,
            since=asked.since,
            until=asked.until,
            reports=asked.report,
            rules=asked.rule,
            bodies=asked.bodies,
            masks=asked.mask,
            beside=asked.beside,
            latest=asked.out,
            skip_corrupt=asked.skip_corrupt,
            # A pod that takes more than its share of memory is killed.
            at_a_time=1,
            tell=progress.tell,
            session=session,
        )
        if asked.rule:
            progress.judge([told(each) for each in outcome.verdicts if not each.is_kept])
        progress.tell("delivering results")
        return deliver(local, asked.out, run_name(asked.run, os.environ, now))
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _tasks(context: SparkContext) -> Tasks:
    """Return how far the stages are that run at present."""
    tracker = context.statusTracker()
    found = (tracker.getStageInfo(number) for number in tracker.getActiveStageIds())
    stages = [stage for stage in found if stage is not None]
    return Tasks(
        sum(each.numTasks for each in stages), sum(each.numCompletedTasks for each in stages)
    )
