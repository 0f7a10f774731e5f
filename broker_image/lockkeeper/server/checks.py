"""Queue of password checks: one at a time, each once, and guesses slowly.

Everybody who asks the same question at the same time gets the same answer. What was found right
is remembered; what was found wrong is, too, in a place of its own, so that guesses push nothing
out. Addresses take turns, and one that guesses wrong waits longer each time.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice
from typing import NamedTuple, TypeAlias

RIGHT_MAX, WRONG_MAX = 4096, 1024
ADDRESSES_MAX = 4096
WAITING_PER_ADDRESS_MAX = 100
FREE_FAILURES = 3
DELAY_SECONDS, DELAY_SECONDS_MAX = 0.1, 1.0
FORGIVEN_SECONDS = 60.0
TOLD_AT_ONCE = 50
"""So many learn of a verdict before the loop has others served: each is a login."""

Matches: TypeAlias = Callable[[str, str], bool]
Tell: TypeAlias = Callable[[bool], None]


class _Question(NamedTuple):
    """Whether *password* is that of *hash*; *digest* stands for both."""

    digest: bytes
    password: str
    hash: str
    address: str


class _Guesser(NamedTuple):
    """An address that was wrong: how often, when last, and until when it waits."""

    failures: int
    at: float
    until: float


class Checks:
    """Answers whether passwords are right; runs one thread, as the other core serves clients."""

    def __init__(self, matches: Matches) -> None:
        """*matches* tells whether a password is that of a hash; it may take its time."""
        self._matches = matches
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="lockkeeper-passwords")
        self._right: dict[bytes, None] = {}
        self._wrong: dict[bytes, None] = {}
        self._asked: dict[bytes, list[Tell]] = {}
        self._waiting: dict[str, deque[_Question]] = {}
        self._guessers: dict[str, _Guesser] = {}
        self._is_busy = False
        self._alarm: asyncio.TimerHandle | None = None

    def ask(self, digest: bytes, password: str, hash: str, address: str, tell: Tell) -> None:
        """Have *tell* called with the answer, at once if it is known to be yes."""
        if digest in self._right:
            tell(True)
        elif digest in self._asked:
            self._asked[digest].append(tell)
        elif len(line := self._waiting.get(address, ())) >= WAITING_PER_ADDRESS_MAX or (
            not line and len(self._waiting) >= ADDRESSES_MAX
        ):
            tell(False)
        else:
            self._asked[digest] = [tell]
            question = _Question(digest, password, hash, address)
            self._waiting.setdefault(address, deque()).append(question)
            self._go_on()

    def _go_on(self) -> None:
        """Begin with the next question, that of the address whose turn it is."""
        loop = asyncio.get_running_loop()
        if self._is_busy or not self._waiting:
            return
        now = loop.time()
        ready = (address for address in self._waiting if self._waits_until(address) <= now)
        address = next(ready, None)
        if address is None:
            self._look_again(min(map(self._waits_until, self._waiting)) - now)
            return
        line = self._waiting.pop(address)
        question = line.popleft()
        if line:
            self._waiting[address] = line
        self._is_busy = True
        if question.digest in self._wrong:
            loop.call_soon(self._learn, question, False)
            return
        checked = loop.run_in_executor(self._pool, self._matches, question.password, question.hash)
        checked.add_done_callback(partial(self._checked, question))

    def _waits_until(self, address: str) -> float:
        guesser = self._guessers.get(address)
        return 0.0 if guesser is None else guesser.until

    def _look_again(self, seconds: float) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm = asyncio.get_running_loop().call_later(seconds, self._go_on)

    def _checked(self, question: _Question, checked: "asyncio.Future[bool]") -> None:
        if not checked.cancelled():
            self._learn(question, checked.exception() is None and checked.result())

    def _learn(self, question: _Question, is_right: bool) -> None:
        """Remember an answer, tell it, and go on."""
        self._is_busy = False
        known, most = (self._right, RIGHT_MAX) if is_right else (self._wrong, WRONG_MAX)
        if len(known) >= most:
            del known[next(iter(known))]
        known[question.digest] = None
        if not is_right:
            self._slow_down(question.address)
        self._tell_askers(self._asked.pop(question.digest), is_right)
        self._go_on()

    def _tell_askers(self, asked: list[Tell], is_right: bool) -> None:
        for tell in islice(asked, TOLD_AT_ONCE):
            tell(is_right)
        if len(asked) > TOLD_AT_ONCE:
            rest = asked[TOLD_AT_ONCE:]
            asyncio.get_running_loop().call_soon(self._tell_askers, rest, is_right)

    def _slow_down(self, address: str) -> None:
        now = asyncio.get_running_loop().time()
        before = self._guessers.pop(address, None)
        failures = 1
        if before is not None and now - before.at < FORGIVEN_SECONDS:
            failures += before.failures
        doublings = min(failures - FREE_FAILURES, 10)
        delay = 0.0 if doublings <= 0 else DELAY_SECONDS * 2 ** (doublings - 1)
        if len(self._guessers) >= ADDRESSES_MAX:
            del self._guessers[next(iter(self._guessers))]
        until = now + min(delay, DELAY_SECONDS_MAX)
        self._guessers[address] = _Guesser(failures, now, until)

    def close(self) -> None:
        """Check nothing any more."""
        if self._alarm is not None:
            self._alarm.cancel()
        self._waiting.clear()
        self._pool.shutdown(wait=False, cancel_futures=True)
