"""Sifting by a process of its own, which the event loop does not have to wait for.

A thread would need the interpreter's lock for nearly all that it does, and each change of hands
takes longer than a message. The process gets its task, and later whether there is haste, as bytes
of its standard input: where that ends it gives up. It writes nothing but its answer.
"""

import json
import logging
import os
import subprocess
import sys
from array import array
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import IO, Any, Final

from lockkeeper.journal.errors import JournalError
from lockkeeper.message.destination import Destination, Kind
from lockkeeper.message.ids import parse_xid
from lockkeeper.store.kahadb.needed import Answer, UndecidedError
from lockkeeper.store.kahadb.sifting import LOWEST_PRIORITY, Pace, Subscribed, Task, sift

logger = logging.getLogger(__name__)

_INPUT, _OUTPUT = 0, 1
_EASY, _HASTE = b"0", b"1"
_ENDED: Final = "the process that read it has ended"


class Apart:
    """A process that sifts, from here."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self._process = process

    def hurry(self, in_haste: bool) -> None:
        """Tell whether there is haste now."""
        self._tell(_HASTE if in_haste else _EASY)

    def give_up(self) -> None:
        """Let it end without an answer; it has nothing to put in order."""
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.close()
        self._process.kill()

    def answer(self) -> Answer:
        """Return the answer, once it is there. Raises UndecidedError, OSError."""
        output = self._process.stdout
        assert output is not None
        with output:
            try:
                return _read_answer(output)
            finally:
                self.give_up()
                self._process.wait()

    def _tell(self, data: bytes) -> None:
        assert self._process.stdin is not None
        # It may have ended, or been told to.
        with suppress(OSError, ValueError):
            self._process.stdin.write(data)
            self._process.stdin.flush()


def begin(task: Task) -> Apart | None:
    """Let a process sift for *task*; None where none can be started."""
    command = [sys.executable, "-P", "-c", f"from {__name__} import main; main()"]
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            # Ctrl-C in a terminal is for the broker, which lets this one end when it should.
            start_new_session=True,
        )
    except OSError as error:
        logger.info("db-%d.log is compacted within this process: %s", task.file_id, error)
        return None
    started = Apart(process)
    started._tell(_task_line(task))
    return started


def main() -> None:
    """Sift for the task of the standard input."""
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, LOWEST_PRIORITY)
    _give_way(in_haste=False)
    line, _, heard = _first_line().partition(b"\n")
    os.set_blocking(_INPUT, False)
    pace = Pace()
    _heed(pace, heard)

    def pause() -> None:
        _listen(pace)
        pace.rest()

    try:
        answer = sift(_task_in(line), pause)
    except (JournalError, UndecidedError) as error:
        told = json.dumps({"undecided": str(error)}).encode() + b"\n"
    except OSError as error:
        told = json.dumps({"refused": str(error)}).encode() + b"\n"
    else:
        told = _answer_bytes(answer)
    rest = memoryview(told)
    while rest:
        rest = rest[os.write(_OUTPUT, rest) :]


def _first_line() -> bytes:
    """Return what was said so far, with a whole line."""
    heard = b""
    while b"\n" not in heard:
        piece = os.read(_INPUT, 1 << 16)
        if not piece:
            raise SystemExit("no task")
        heard += piece
    return heard


def _listen(pace: Pace) -> None:
    """Hear whether there is haste; end where nobody waits for the answer any more."""
    try:
        heard = os.read(_INPUT, 64)
    except BlockingIOError:
        return
    if not heard:
        raise UndecidedError("nobody waits for it any more")
    _heed(pace, heard)


def _heed(pace: Pace, heard: bytes) -> None:
    """Go on as fast as was said last, if anything was."""
    in_haste = heard.endswith(_HASTE)
    if heard and in_haste != pace.in_haste:
        pace.in_haste = in_haste
        _give_way(in_haste)


def _give_way(in_haste: bool) -> None:
    """Let everybody else who wants the processor have it, unless there is haste."""
    with suppress(OSError, AttributeError):
        policy = os.SCHED_OTHER if in_haste else os.SCHED_IDLE
        os.sched_setscheduler(0, policy, os.sched_param(0))


def _task_line(task: Task) -> bytes:
    told = {
        "directory": str(task.directory),
        "file": task.file_id,
        "related": sorted(task.related),
        "ends": list(task.ends.items()),
        "subscribed": [
            (each.key, *_told_of(each.topic), each.created_in, each.is_retroactive)
            for each in task.subscribed
        ],
        "undecided": [str(each) for each in task.undecided],
    }
    return json.dumps(told).encode() + b"\n"


def _task_in(line: bytes) -> Task:
    told = json.loads(line)
    return Task(
        Path(told["directory"]),
        told["file"],
        frozenset(told["related"]),
        dict(told["ends"]),
        [
            Subscribed(key, Destination(Kind(kind), name), created_in, is_retroactive)
            for key, kind, name, created_in, is_retroactive in told["subscribed"]
        ],
        frozenset(map(parse_xid, told["undecided"])),
    )


def _answer_bytes(answer: Answer) -> bytes:
    """Return an answer as a line, and numbers, of which there may be many: 8 bytes each.

    They are the lengths of `kept`, its offsets and sizes, and `adds`.
    """
    lengths = array("q", map(len, answer.kept))
    places = array("q", chain.from_iterable(chain.from_iterable(answer.kept)))
    told = {
        "lengths": len(lengths),
        "places": len(places),
        "end": answer.end,
        "adds": len(answer.adds),
        "add_bytes": answer.add_bytes,
        "refers": sorted(answer.refers),
        "outcomes": sorted(answer.outcomes),
        "referring": sorted(answer.referring),
        "ending": sorted(answer.ending),
        "destinations": [_told_of(each) for each in answer.destinations],
        "created": [(*_told_of(topic), key) for topic, key in answer.created],
    }
    numbers = b"".join(map(bytes, (lengths, places, answer.adds)))
    return json.dumps(told).encode() + b"\n" + numbers


def _read_answer(output: IO[bytes]) -> Answer:
    told: dict[str, Any] = json.loads(output.readline() or b"{}")
    if "undecided" in told:
        raise UndecidedError(told["undecided"])
    if "add_bytes" not in told:
        raise ChildProcessError(told.get("refused", _ENDED))
    lengths, places, adds = (_numbers(output, told[name]) for name in ("lengths", "places", "adds"))
    place = iter(zip(places[::2], places[1::2], strict=True))
    return Answer(
        told["end"],
        [[next(place) for _ in range(length)] for length in lengths],
        adds,
        told["add_bytes"],
        set(told["refers"]),
        set(told["outcomes"]),
        set(told["referring"]),
        set(told["ending"]),
        {Destination(Kind(kind), name) for kind, name in told["destinations"]},
        {(Destination(Kind(kind), name), key) for kind, name, key in told["created"]},
    )


def _numbers(output: IO[bytes], count: int) -> "array[int]":
    numbers = array("q")
    data = output.read(8 * count)
    if len(data) < 8 * count:
        raise ChildProcessError(_ENDED)
    numbers.frombytes(data)
    return numbers


def _told_of(destination: Destination) -> tuple[int, str]:
    return int(destination.kind), destination.name
