"""The pair of brokers of the demo: `lockkeeper up`, asked and hurt from outside."""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

ADMIN_URLS = ("http://127.0.0.1:8161", "http://127.0.0.1:8162")
START_SECONDS = 30.0
STOP_SECONDS = 30.0


class Pair:
    """A master and a standby over one journal; a context manager that stops both."""

    def __init__(self, resource: Path, journal: Path, log: Path) -> None:
        self.log = log
        command = [sys.executable, "-m", "lockkeeper.cli.main", "up"]
        command += ["-f", str(resource), "--data", str(journal)]
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                command, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
            )

    def __enter__(self) -> "Pair":
        """Wait for the master. Raises RuntimeError with the log when none comes."""
        deadline = time.monotonic() + START_SECONDS
        while self.master() is None or not self.has_standby():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.stop()
                raise RuntimeError(f"the pair did not start:\n{self.log.read_text()[-2000:]}")
            time.sleep(0.1)
        return self

    def __exit__(self, *_: object) -> None:
        """Stop both."""
        self.stop()

    def master(self) -> dict[str, Any] | None:
        """Return the status of the master, if there is one now."""
        return next((status for status in _statuses() if status["role"] == "master"), None)

    def has_standby(self) -> bool:
        """Tell whether a standby is ready to take over."""
        return any(status["role"] == "standby" for status in _statuses())

    def kill_master(self) -> str:
        """End the master as a crash would, and return the name of its replica."""
        master = self.master()
        if master is None:
            raise RuntimeError("there is no master to kill")
        os.kill(int(master["pid"]), signal.SIGKILL)
        return str(master["replica"])

    def stop(self) -> None:
        """Stop both as Ctrl-C does."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
            try:
                self._process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()


def _statuses() -> list[dict[str, Any]]:
    found = []
    for url in ADMIN_URLS:
        try:
            with urllib.request.urlopen(f"{url}/api/v1/status", timeout=1) as answer:
                found.append(json.load(answer))
        except (urllib.error.URLError, OSError, ValueError):
            continue
    return found
