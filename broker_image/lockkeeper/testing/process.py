"""A broker process for tests: `lockkeeper broker` as it runs elsewhere, on loopback."""

import socket
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import NoReturn

from lockkeeper.testing.configuration import DEFAULTS

START_SECONDS_MAX = 60.0
STOP_SECONDS_MAX = 30.0
POLL_SECONDS = 0.01
TAIL_CHARACTERS = 3000


class ProcessBroker:
    """A broker in a process of its own; as a context manager it starts, and ends with it.

    `directory` holds its journal (KahaDB), `log` is the file with all that it printed.
    """

    def __init__(self, home: Path, file: Path | None = None) -> None:
        """Keep everything below *home*. *file* is YAML with one Broker and its Destinations."""
        home.mkdir(parents=True, exist_ok=True)
        if file is None:
            file = home / "broker.yaml"
            file.write_text(DEFAULTS)
        self.directory = home / "data"
        self.log = home / "broker.log"
        self._port = _free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self._command = [
            *(sys.executable, "-m", "lockkeeper.cli.main", "broker", "--supervised"),
            *("-f", str(file), "--data", str(self.directory)),
            *("--listen", f"openwire://127.0.0.1:{self._port}", "--admin", "127.0.0.1:0"),
        ]

    def __enter__(self) -> "ProcessBroker":
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    @property
    def url(self) -> str:
        """The address that clients dial; it stays the same when the broker starts again."""
        return f"tcp://127.0.0.1:{self._port}"

    @property
    def now(self) -> float:
        """The broker's time, in seconds since the epoch."""
        return time.time()

    def start(self) -> None:
        """Start again, and wait until clients can connect. Raises RuntimeError."""
        if self._process is not None:
            return
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.PIPE, stdout=log, stderr=subprocess.STDOUT
            )
        deadline = time.monotonic() + START_SECONDS_MAX
        while not _accepts(self._port):
            ended = self._process.poll()
            if ended is not None or time.monotonic() > deadline:
                self.kill()
                tail = self.log.read_text(errors="replace")[-TAIL_CHARACTERS:]
                raise RuntimeError(f"the broker did not start (exit code {ended}):\n{tail}")
            time.sleep(POLL_SECONDS)

    def stop(self) -> None:
        """Stop it by SIGTERM; it is killed when that takes too long."""
        self._end(by_force=False)

    def kill(self) -> None:
        """End it by SIGKILL."""
        self._end(by_force=True)

    def _end(self, by_force: bool) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        if not by_force:
            process.terminate()
            try:
                process.wait(STOP_SECONDS_MAX)
            except subprocess.TimeoutExpired:
                by_force = True
        if by_force:
            process.kill()
        process.wait()
        assert process.stdin is not None
        process.stdin.close()

    def advance(self, duration: str | float | timedelta) -> None:
        """Skip the test: the time of a process is that of its machine."""
        _skip("virtual time")

    def cut(self) -> None:
        """Skip the test."""
        _skip("cut()")

    def fill_disk(self) -> None:
        """Skip the test."""
        _skip("fill_disk()")

    def free_disk(self) -> None:
        """Skip the test."""
        _skip("free_disk()")


def _skip(what: str) -> NoReturn:
    import pytest

    pytest.skip(f"{what} needs the broker in the process of the test")


def _free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _accepts(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0
