"""A Broker's replicas as local processes that share one directory: what `up` runs.

It behaves as a StatefulSet would: every replica runs all the time, one that ends is started
again, and whichever holds the directory's lock is the master. Only a replica that has never
served nor stood by, and ends by itself, is not started again: another try would not help.
"""

import asyncio
import signal
import time
from collections.abc import Callable, Sequence

from lockkeeper.server.logs import LogLine, read_line
from lockkeeper.server.roles import ENDED, MASTER, STANDBY

RESTART_SECONDS_MIN, RESTART_SECONDS_MAX = 0.5, 30.0
# A replica that ran this long is healthy: the next restart does not wait longer than the first.
HEALTHY_SECONDS = 30.0
HEAD_START_SECONDS = 5.0
STOP_SECONDS = 30.0
LINE_BYTES_MAX = 4 * 1024 * 1024
# What a process exits with when its options or its resource are wrong.
MISUSED_EXIT_CODE = 2

Tell = Callable[[int, LogLine], None]


class Replicas:
    """Keeps the processes of all replicas running until told to stop."""

    def __init__(self, commands: Sequence[Sequence[str]], tell: Tell) -> None:
        """*commands* start replica 0, 1, …, which log JSON; *tell* gets number and line."""
        self._commands = commands
        self._tell = tell
        self._stopping = asyncio.Event()
        self._has_begun = asyncio.Event()
        self._has_been_well: set[int] = set()
        self.roles: dict[int, str] = {}
        self.processes: dict[int, asyncio.subprocess.Process] = {}
        self.hopeless: int | None = None
        """The replica that cannot run at all, if there is one."""
        self.exit_code = 0

    async def run(self) -> int:
        """Run until SIGINT or SIGTERM, or until a replica cannot run at all.

        A second signal kills. Returns the exit code: 0 after a stop, else that of the hopeless
        replica.
        """
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop_or_kill)
        keepers = []
        for replica in range(len(self._commands)):
            keeper = asyncio.create_task(self._keep(replica))
            # One that ends before it is told to has failed, as when nobody reads what is told.
            keeper.add_done_callback(self._stop_too)
            keepers.append(keeper)
            if replica == 0:
                await self._give_head_start()
        await self._stopping.wait()
        await self._stop()
        await asyncio.gather(*keepers)
        return self.exit_code

    def _stop_or_kill(self) -> None:
        if self._stopping.is_set():
            for process in self.processes.values():
                if process.returncode is None:
                    process.kill()
        self._stopping.set()
        self._has_begun.set()

    def _stop_too(self, _: "asyncio.Task[None]") -> None:
        self._stopping.set()
        self._has_begun.set()

    async def _give_head_start(self) -> None:
        """Wait until the first replica has a role: it is the master when nobody else is."""
        try:
            async with asyncio.timeout(HEAD_START_SECONDS):
                await self._has_begun.wait()
        except TimeoutError:
            return

    async def _keep(self, replica: int) -> None:
        """Run one replica, again and again."""
        delay = RESTART_SECONDS_MIN
        while not self._stopping.is_set():
            began = time.monotonic()
            code = await self._run_once(replica)
            if self._stopping.is_set():
                return
            how = f"was killed by signal {-code}" if code < 0 else f"ended with code {code}"
            if self._is_hopeless(replica, code):
                self._say(replica, "error", how, ENDED)
                self.hopeless, self.exit_code = replica, code
                self._stopping.set()
                return
            ran = time.monotonic() - began
            delay = RESTART_SECONDS_MIN if ran > HEALTHY_SECONDS else delay
            self._say(replica, "warning", f"{how}; starting it again in {delay:.1f} s", ENDED)
            try:
                async with asyncio.timeout(delay):
                    await self._stopping.wait()
            except TimeoutError:
                delay = min(2 * delay, RESTART_SECONDS_MAX)

    def _is_hopeless(self, replica: int, code: int) -> bool:
        """Tell whether starting *replica* again, which ended with *code*, cannot help."""
        never_well = replica not in self._has_been_well
        return code == MISUSED_EXIT_CODE or (code > 0 and never_well)

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
            limit=LINE_BYTES_MAX,
        )
        self.processes[replica] = process
        if self._stopping.is_set():
            process.terminate()
        assert process.stdout is not None
        async for line in process.stdout:
            self._hear(replica, line.decode(errors="replace").rstrip())
        code = await process.wait()
        self.roles[replica] = ENDED
        self._has_begun.set()
        return code

    def _hear(self, replica: int, text: str) -> None:
        line = read_line(text, time.time())
        if line.role is not None:
            self.roles[replica] = line.role
            self._has_begun.set()
            if line.role in (MASTER, STANDBY):
                self._has_been_well.add(replica)
        self._tell(replica, line)

    def _say(self, replica: int, level: str, text: str, role: str | None = None) -> None:
        self._tell(replica, LogLine(time.time(), level, text, role))

    async def _stop(self) -> None:
        """Stop the standbys, then the master: nobody takes over from one that is stopped."""
        running = [
            replica for replica, process in self.processes.items() if process.returncode is None
        ]
        masters = [replica for replica in running if self.roles.get(replica) == MASTER]
        for group in ([each for each in running if each not in masters], masters):
            await asyncio.gather(*map(self._stop_one, group))

    async def _stop_one(self, replica: int) -> None:
        process = self.processes[replica]
        process.terminate()
        try:
            async with asyncio.timeout(STOP_SECONDS):
                await process.wait()
        except TimeoutError:
            self._say(replica, "warning", "did not stop in time: killed")
            process.kill()
