"""Runs parsers on made inputs: each may raise its documented errors, within bounded CPU and memory.

An input follows from the seed of the run, the name of its target and its number, so that every
finding can be made again from these three; the bytes themselves are told, too.
"""

import gc
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from types import FrameType
from typing import NamedTuple

MEMORY = Path("/dev/shm")
FINDINGS_MAX = 20
SHOWN_BYTES = 4096


class EndlessError(BaseException):
    """An input took too much CPU time; no `except Exception` of a parser may swallow that."""


class WrongError(AssertionError):
    """A parser raised nothing, but what it says or leaves behind is wrong."""


@dataclass(frozen=True)
class Target:
    """One thing that reads what others wrote.

    `make` returns an input, `run` reads it and may raise only `allowed`. `share` says how much of
    a run it gets, `seconds` and `megabytes` what one input may cost.
    """

    name: str
    make: Callable[[Random], bytes]
    run: Callable[[bytes], object]
    allowed: tuple[type[BaseException], ...]
    share: float = 1.0
    seconds: float = 1.0
    megabytes: int = 64


class Finding(NamedTuple):
    """An input that did what it must not."""

    target: str
    seed: int
    number: int
    what: str
    data: bytes
    trace: str

    @property
    def place(self) -> str:
        """What went wrong and where: the same for the same fault, whatever the input."""
        lines = [line for line in self.trace.splitlines() if line.startswith("  File")]
        return f"{self.what.partition(':')[0]} {lines[-1].strip() if lines else ''}"

    def __str__(self) -> str:
        """Say what happened and how to make it happen again."""
        again = f"python tests/fuzz/run_fuzz.py --target {self.target} --seed {self.seed}"
        shown = self.data.hex() if len(self.data) <= SHOWN_BYTES else f"{len(self.data)} bytes"
        return (
            f"{self.target}: {self.what}\n  again: {again} --first {self.number} --inputs 1\n"
            f"  input: {shown}\n{self.trace}"
        )


class Outcome(NamedTuple):
    """What came of a target's turn; `refused` inputs raised an error that is documented."""

    target: str
    inputs: int
    refused: int
    seconds: float
    findings: list[Finding]


def made(target: Target, seed: int, number: int) -> bytes:
    """Return the input of this number."""
    return target.make(Random(f"{seed} {target.name} {number}"))


def fuzz(target: Target, seed: int, inputs: int, first: int = 0) -> Outcome:
    """Run *target* on so many inputs; one finding is kept of each place."""
    refused, found = 0, dict[str, Finding]()
    begun = time.process_time()
    with _bounded() as within:
        for number in range(first, first + inputs):
            data = made(target, seed, number)
            try:
                with within(target):
                    target.run(data)
            except target.allowed:
                refused += 1
            except (Exception, EndlessError, RecursionError) as error:
                told = Finding(target.name, seed, number, _told(error), data, _trace(error))
                found.setdefault(told.place, told)
                if len(found) >= FINDINGS_MAX:
                    break
    spent = time.process_time() - begun
    return Outcome(target.name, inputs, refused, spent, list(found.values()))


@contextmanager
def scratch() -> Iterator[None]:
    """Give this process and those it forks a place in memory for files; it goes with the first."""
    global _scratch
    where = MEMORY if MEMORY.is_dir() else None
    _scratch = Path(tempfile.mkdtemp(prefix="lockkeeper-fuzz-", dir=where))
    try:
        yield
    finally:
        # A process that is ending may still write there.
        while _scratch.exists():
            shutil.rmtree(_scratch, ignore_errors=True)
        _scratch = None


_scratch: Path | None = None


def new_directory() -> Path:
    """Return a new directory in that place."""
    if _scratch is None:
        raise RuntimeError("files are made within `scratch()` only")
    return Path(tempfile.mkdtemp(dir=_scratch))


class _Bounds:
    """Looks at what one input costs."""

    def __init__(self) -> None:
        self._seconds = 0.0
        self._megabytes = 0
        self._peak = 0.0

    def __call__(self, target: Target) -> "_Bounds":
        self._seconds, self._megabytes = target.seconds, target.megabytes
        return self

    def __enter__(self) -> None:
        self._peak = _peak_megabytes()
        signal.setitimer(signal.ITIMER_PROF, self._seconds)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        signal.setitimer(signal.ITIMER_PROF, 0)
        grown = _peak_megabytes() - self._peak
        if grown > self._megabytes:
            _forget_peak()
            raise WrongError(f"took {grown:.0f} MB of memory, more than {self._megabytes}")


@contextmanager
def _bounded() -> Iterator[_Bounds]:
    """Have the kernel tell when an input takes too long."""

    def ring(_: int, frame: FrameType | None) -> None:
        raise EndlessError("took too much CPU time")

    _forget_peak()
    before = signal.signal(signal.SIGPROF, ring)
    try:
        yield _Bounds()
    finally:
        signal.signal(signal.SIGPROF, before)
        gc.collect()


def _forget_peak() -> None:
    """Have the kernel measure the peak from now on; what came before could hide an input's."""
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")


def _peak_megabytes() -> float:
    """Return the most memory this process has had: an input can only add to that."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _told(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"[:400]


def _trace(error: BaseException) -> str:
    found = traceback.extract_tb(error.__traceback__)
    own = str(Path(__file__))
    kept = [each for each in found if each.filename != own]
    return "".join(traceback.format_list(kept[-12:]))


def reached(targets: list[Target], inputs: int) -> set[tuple[str, str]]:
    """Return file and name of every function that the targets call, with the first inputs."""
    found: set[tuple[str, str]] = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            found.add((frame.f_code.co_filename, frame.f_code.co_name))

    for target in targets:
        for number in range(inputs):
            data = made(target, 1, number)
            sys.setprofile(note)
            try:
                target.run(data)
            except target.allowed:
                pass
            finally:
                sys.setprofile(None)
    return found
