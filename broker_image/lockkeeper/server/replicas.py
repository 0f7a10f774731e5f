"""A Broker's replicas as local processes that share one directory: what `up` runs.

It behaves as a StatefulSet would: every replica runs all the time, one that ends is started
again, and whichever holds the directory's lock is the master.
"""

import asyncio
import signal
import time
from collections.abc import Callable, Sequence

RESTART_SECONDS_MIN, RESTART_SECONDS_MAX = 0.5, 30.0
# A replica that ran this long is healthy: the next restart does not wait longer than the first.
HEALTHY_SECONDS = 30.0
STOP_SECONDS = 30.0
# What a process exits with when starting it again cannot help (a wrong option, a wrong resource).
HOPELESS_EXIT_CODES = (2,)


class Replicas:
    """Keeps the processes of all replicas running until told to stop."""

    def __init__(self, commands: Sequence[Sequence[str]], show: Callable[[int, str], None]) -> None:
        """*commands* start replica 0, 1, …; *show* gets the number and a line of its output."""
        self._commands = commands
        self._show = show
        self._stopping = asyncio.Event()
        self.processes: dict[int, asyncio.subprocess.Process] = {}
        self.exit_code = 0

    async def run(self) -> int:
        """Run until SIGINT or SIGTERM, or until a replica cannot run at all.

        Returns the exit code: 0 after a stop, else that of the hopeless replica.
        """
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stopping.set)
        # The first replica becomes the master when nobody else is.
        keepers = []
        for replica in range(len(self._commands)):
            keepers.append(asyncio.create_task(self._keep(replica)))
            await asyncio.sleep(0.3 if replica == 0 else 0)
        await self._stopping.wait()
        await self._stop()
        await asyncio.gather(*keepers)
        return self.exit_code

    async def _keep(self, replica: int) -> None:
        """Run one replica, again and again."""
        delay = RESTART_SECONDS_MIN
        while not self._stopping.is_set():
            began = time.monotonic()
            code = await self._run_once(replica)
            if self._stopping.is_set():
                return
            if code in HOPELESS_EXIT_CODES:
                self.exit_code = code
                self._stopping.set()
                return
            ran = time.monotonic() - began
            delay = RESTART_SECONDS_MIN if ran > HEALTHY_SECONDS else delay
            how = f"was killed by signal {-code}" if code < 0 else f"ended with code {code}"
            self._show(replica, f"replica {replica} {how}; starting it again in {delay:.1f} s")
            try:
                await asyncio.wait_for(self._stopping.wait(), delay)
            except TimeoutError:
                delay = min(2 * delay, RESTART_SECONDS_MAX)

    async def _run_once(self, replica: int) -> int:
        """Run one process of a replica to its end and return its exit code."""
        # The replica ends with its standard input: it never outlives this process. Its own
        # session keeps Ctrl-C away from it, so that standbys can be stopped before the master.
        process = await asyncio.create_subprocess_exec(
            *self._commands[replica],
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
        )
        self.processes[replica] = process
        assert process.stdout is not None
        async for line in process.stdout:
            self._show(replica, line.decode(errors="replace").rstrip())
        return await process.wait()

    async def _stop(self) -> None:
        """Stop the replicas, last one first: the master is most likely the first."""
        for replica in sorted(self.processes, reverse=True):
            process = self.processes[replica]
            if process.returncode is None:
                process.terminate()
                try:
                    await asyncio.wait_for(process.wait(), STOP_SECONDS)
                except TimeoutError:
                    self._show(replica, f"replica {replica} did not stop in time: killed")
                    process.kill()
