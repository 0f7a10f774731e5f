"""The course of a demo: its processes work, halfway the master is killed, and all ends well."""

import multiprocessing
import time
from collections.abc import Callable
from multiprocessing.synchronize import Event
from typing import Any, TypeAlias

import roles
from pair import Pair
from progress import Progress
from tally import Accounts

STALLED_SECONDS = 120.0
END_SECONDS = 20.0

Work: TypeAlias = Callable[[roles.Events, Event], list[tuple[Any, ...]]]
"""Returns a role and its arguments for each process, which tells events until it is finished."""


def run(pair: Pair, tally: Accounts, progress: Progress, work: Work) -> None:
    """Start processes, kill the master halfway, wait for the last departure, and end them."""
    context = multiprocessing.get_context("spawn")
    events: roles.Events = context.Queue()
    finished = context.Event()
    processes = [
        context.Process(target=roles.guarded, args=each, daemon=True)
        for each in work(events, finished)
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
            process.join(END_SECONDS)
    tally.drain(events)
