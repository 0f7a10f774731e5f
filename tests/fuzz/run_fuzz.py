"""`make fuzz`: every target in its share of a million inputs; exit code 1 when one was harmed.

A run tells its seed. `--target NAME --seed N --first I --inputs 1` makes one input again.
"""

import argparse
import gc
import logging
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from functools import cache
from types import FrameType
from typing import NamedTuple, NoReturn

import broker_targets
import journal_targets
import message_targets
import rocketmq_targets
import session_targets
import text_targets
from fuzzer import Outcome, Target, fuzz, scratch

THEMES = (
    message_targets,
    text_targets,
    session_targets,
    broker_targets,
    journal_targets,
    rocketmq_targets,
)
INPUTS = 1_000_000
PIECES = 6
"""A target's inputs come in so many pieces, so that no process is left with most of the work."""
TOLD_SECONDS = 10


class Piece(NamedTuple):
    """What one process does in one go."""

    target: str
    inputs: int
    first: int


@cache
def all_targets() -> list[Target]:
    """Return the targets of all themes; their corpora take a second, once in a process."""
    return [target for theme in THEMES for target in theme.targets()]


def shares(targets: Sequence[Target], inputs: int) -> dict[str, int]:
    """Return how many of *inputs* each target gets."""
    whole = sum(target.share for target in targets)
    return {each.name: max(1, round(inputs * each.share / whole)) for each in targets}


def pieces(targets: Sequence[Target], inputs: int, first: int) -> Iterator[Piece]:
    """Yield the pieces of a run, those of the targets by turns: each is tried early on."""
    totals = shares(targets, inputs)
    for number in range(PIECES):
        for name, total in totals.items():
            begin, end = (total * each // PIECES for each in (number, number + 1))
            if end > begin:
                yield Piece(name, end - begin, first + begin)


def _begin() -> None:
    """Prepare a process: it ends when it is told to by the first one, not by the keyboard."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    logging.disable()


def _run(seed: int, piece: Piece) -> Outcome:
    (target,) = (each for each in all_targets() if each.name == piece.target)
    return fuzz(target, seed, piece.inputs, piece.first)


def joined(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Return one outcome for each target; a finding of each place is enough."""
    found: dict[str, Outcome] = {}
    for each in outcomes:
        before = found.get(each.target, Outcome(each.target, 0, 0, 0.0, []))
        known = {finding.place for finding in before.findings}
        fresh = [finding for finding in each.findings if finding.place not in known]
        found[each.target] = Outcome(
            each.target,
            before.inputs + each.inputs,
            before.refused + each.refused,
            before.seconds + each.seconds,
            before.findings + fresh,
        )
    return sorted(found.values())


class Progress:
    """Tells how far a run is, and each finding at once: a run may be ended early."""

    def __init__(self, inputs: int) -> None:
        self.outcomes: list[Outcome] = []
        self._inputs = inputs
        self._began = self._told = time.monotonic()
        self._places: set[tuple[str, str]] = set()

    def add(self, outcome: Outcome) -> None:
        """Take what came of a piece."""
        self.outcomes.append(outcome)
        for finding in outcome.findings:
            if (finding.target, finding.place) not in self._places:
                self._places.add((finding.target, finding.place))
                print(f"\n{finding}", flush=True)
        if time.monotonic() - self._told > TOLD_SECONDS:
            self._told = time.monotonic()
            done = sum(each.inputs for each in self.outcomes)
            minutes = (self._told - self._began) / 60
            print(f"{minutes:5.1f} min: {done:,} of {self._inputs:,} inputs, "
                  f"{len(self._places)} findings", flush=True)  # fmt: skip

    def sum_up(self) -> None:
        """Print the table of all targets."""
        print(f"{'target':16}{'inputs':>10}{'refused':>10}{'CPU s':>9}{'per s':>9}  findings")
        for each in joined(self.outcomes):
            rate = each.inputs / max(each.seconds, 0.001)
            print(f"{each.target:16}{each.inputs:>10,}{each.refused:>10,}{each.seconds:>9.1f}"
                  f"{rate:>9,.0f}  {len(each.findings)}")  # fmt: skip
        inputs = sum(each.inputs for each in self.outcomes)
        minutes = (time.monotonic() - self._began) / 60
        print(f"{inputs:,} inputs in {minutes:.1f} min, {len(self._places)} findings")


@contextmanager
def _processes(jobs: int) -> Iterator[ProcessPoolExecutor]:
    """Processes that have the corpora already, and end with this one, however that ends."""
    context = multiprocessing.get_context("fork")
    # What is there now stays: no collection looks through the corpora again, in any process.
    gc.collect()
    gc.freeze()
    pool = ProcessPoolExecutor(jobs, context, _begin)
    try:
        yield pool
    except BaseException:
        for process in multiprocessing.active_children():
            process.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _terminated(number: int, _: FrameType | None) -> NoReturn:
    sys.exit(128 + number)


def main() -> int:
    """Run, and tell what was found."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--target", action="append", help="only this one; several times")
    options.add_argument("--seed", type=int, default=time.time_ns() % (1 << 32))
    options.add_argument("--inputs", type=int, default=INPUTS)
    options.add_argument("--first", type=int, default=0, help="number of the first input")
    options.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    chosen = options.parse_args()
    targets = [each for each in all_targets() if not chosen.target or each.name in chosen.target]
    if not targets:
        options.error("there is no such target")
    print(f"seed {chosen.seed}", flush=True)
    signal.signal(signal.SIGTERM, _terminated)
    todo = list(pieces(targets, chosen.inputs, chosen.first))
    progress = Progress(sum(piece.inputs for piece in todo))
    with scratch(), _processes(chosen.jobs) as pool:
        for done in as_completed([pool.submit(_run, chosen.seed, each) for each in todo]):
            progress.add(done.result())
    progress.sum_up()
    return 1 if any(each.findings for each in progress.outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
