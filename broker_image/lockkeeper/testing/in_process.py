"""A real broker in the process of its tests, with its own time, network and disk.

It has the core, the protocol, the journal and the event loop's turns of `lockkeeper broker`. It
listens on loopback, as a client's way over a socket is a part of what is tested: every client of
OpenWire can connect, blocking, asyncio, in this process or another.
"""

import shutil
import tempfile
from datetime import timedelta
from pathlib import Path
from types import TracebackType

from lockkeeper.client.blocking.loop import LoopThread
from lockkeeper.testing.configuration import configuration
from lockkeeper.testing.life import Life, VirtualClock
from lockkeeper.testing.storage import directory_in_memory
from lockkeeper_api.units import parse_duration


class InProcessBroker:
    """A broker in a thread of this process; as a context manager it starts, and ends with it.

    `directory` holds its journal (KahaDB), in memory where the system has a place for that.
    """

    def __init__(self, file: Path | None = None) -> None:
        """*file* is YAML with one Broker and its Destinations. Raises RefusedConfigurationError.

        Users, TLS, network connectors and the admin endpoint play no role; see ProcessBroker.
        """
        self._configuration = configuration(file)
        self._clock = VirtualClock()
        self._life: Life | None = None
        self._port = 0
        home = tempfile.mkdtemp(prefix="lockkeeper-", dir=directory_in_memory())
        self._home = Path(home)
        self.directory = self._home / "data"
        self._thread = LoopThread()

    def __enter__(self) -> "InProcessBroker":
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def url(self) -> str:
        """The address that clients dial; it stays the same when the broker starts again."""
        return f"tcp://127.0.0.1:{self._port}"

    @property
    def now(self) -> float:
        """The broker's time, in seconds since the epoch."""
        return self._clock() / 1000

    def start(self) -> None:
        """Start again, with what the journal holds. Raises StoreError, CannotRunError."""
        if self._life is None:
            self._thread.call(self._start())

    async def _start(self) -> None:
        life = Life(self._configuration, self.directory, self._clock)
        try:
            self._port = await life.open(self._port)
        except BaseException:
            await life.end(is_clean=False)
            raise
        self._life = life

    def stop(self) -> None:
        """Stop as after SIGTERM: everything is in the journal."""
        if self._life is not None:
            self._thread.call(self._end(is_clean=True))

    def kill(self) -> None:
        """End as after SIGKILL: the journal holds what the kernel had been given, no more."""
        if self._life is not None:
            self._thread.call(self._kill())

    async def _kill(self) -> None:
        found = self._home / "found"
        shutil.copytree(self.directory, found)
        await self._end(is_clean=False)
        shutil.rmtree(self.directory)
        found.rename(self.directory)

    async def _end(self, is_clean: bool) -> None:
        life, self._life = self._serving, None
        await life.end(is_clean)
        if life.failure is not None:
            raise life.failure

    def advance(self, duration: str | float | timedelta) -> None:
        """Let time pass at once: `"6h"`, or seconds. Raises ValueError.

        Whatever the broker counts comes due in its order: expiry, scheduled messages, redelivery
        by the broker, limits of silence. What clients count themselves does not.
        """
        if isinstance(duration, int | float):
            duration = timedelta(seconds=duration)
        milliseconds = parse_duration(duration) // timedelta(milliseconds=1)
        self._thread.call(self._serving.advance(milliseconds))

    def cut(self) -> None:
        """End all connections at once, as a network does that fails; clients may come back."""
        self._thread.call(self._serving.cut())

    def fill_disk(self) -> None:
        """Have no room on the disk: persistent messages wait, or are refused, by systemUsage."""
        self._thread.call(self._fill(True))

    def free_disk(self) -> None:
        """Have room on the disk again; what waits goes on."""
        self._thread.call(self._fill(False))

    async def _fill(self, is_full: bool) -> None:
        self._serving.fill(is_full)

    @property
    def _serving(self) -> Life:
        if self._life is None:
            raise RuntimeError("the broker does not run: call start() first")
        return self._life

    def close(self) -> None:
        """End for good; the journal is deleted. Raises StoreError when the journal had failed."""
        try:
            self.stop()
        finally:
            self._thread.stop()
            shutil.rmtree(self._home, ignore_errors=True)
