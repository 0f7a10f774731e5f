"""Celery's workers as processes of their own, and what their tasks have noted."""

import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import brokers

HERE = Path(__file__).parent
START_SECONDS_MAX = 240.0
STOP_SECONDS_MAX = 60.0


def kombu_url(broker: brokers.RunningBroker) -> str:
    """Return the URL of a broker for kombu and Celery."""
    return f"lockkeeper+openwire://127.0.0.1:{broker.port}"


@dataclass
class Application:
    """The application of celery_tasks.py over one broker."""

    url: str
    notes: Path
    queue: str = field(default_factory=lambda: f"tasks-{uuid.uuid4()}")
    multiplier: int = 4
    workers: "list[Worker]" = field(default_factory=list)
    begun: "list[subprocess.Popen[bytes]]" = field(default_factory=list)

    @property
    def environment(self) -> dict[str, str]:
        """The variables of all its processes."""
        return {
            **os.environ,
            "BROKER_URL": self.url,
            "NOTES": str(self.notes),
            "QUEUE": self.queue,
            "MULTIPLIER": str(self.multiplier),
            "PYTHONPATH": str(HERE),
            "PYTHONWARNINGS": "ignore",
        }

    def worker(self, name: str, *options: str, waits: bool = True) -> "Worker":
        """Start a worker."""
        worker = Worker(self, name, options)
        self.workers.append(worker)
        if waits:
            worker.wait()
        return worker

    def run_code(self, code: str, seconds: float = 60.0) -> str:
        """Run a program that has `celery_tasks` imported; return what it prints."""
        command = [sys.executable, "-c", f"import celery_tasks as tasks\n{code}"]
        return self._run(command, seconds)

    def begin(self, code: str) -> "subprocess.Popen[bytes]":
        """Begin to run such a program; what it prints is in `begun.log`."""
        command = [sys.executable, "-c", f"import celery_tasks as tasks\n{code}"]
        with (self.notes / "begun.log").open("ab") as log:
            begun = subprocess.Popen(
                command, env=self.environment, cwd=self.notes, stdout=log, stderr=subprocess.STDOUT
            )
        self.begun.append(begun)
        return begun

    def celery(self, *arguments: str, seconds: float = 60.0) -> str:
        """Run a command of Celery's; return what it prints."""
        command = [sys.executable, "-m", "celery", "-A", "celery_tasks", *arguments]
        return self._run(command, seconds)

    def _run(self, command: list[str], seconds: float) -> str:
        ran = subprocess.run(
            command, env=self.environment, cwd=self.notes, capture_output=True, text=True,
            timeout=seconds, check=False,
        )  # fmt: skip
        assert ran.returncode == 0, ran.stdout + ran.stderr
        return ran.stdout

    def noted(self, kind: str) -> list[int]:
        """Return the numbers of the tasks that have noted something, in that order."""
        path = self.notes / kind
        lines = path.read_text().splitlines() if path.exists() else []
        return [int(line.split()[0]) for line in lines]

    def times(self, kind: str) -> dict[int, float]:
        """Return when each task has noted something."""
        path = self.notes / kind
        lines = path.read_text().splitlines() if path.exists() else []
        return {int(line.split()[0]): float(line.split()[1]) for line in lines}

    def close(self) -> None:
        """End all workers and programs."""
        for worker in self.workers:
            worker.kill()
        for begun in self.begun:
            begun.kill()


class Worker:
    """One worker process with its children."""

    def __init__(self, application: Application, name: str, options: tuple[str, ...]) -> None:
        self.name = name
        self.log = application.notes / f"{name}.log"
        self._command = [sys.executable, "-m", "celery", "-A", "celery_tasks", "worker"]
        self._command += ["-n", f"{name}@tests", "-l", "info", *options]
        self._application = application
        self.start()

    def start(self) -> None:
        """Start it, in a group of processes of its own."""
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self._command, env=self._application.environment, cwd=self._application.notes,
                stdout=log, stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip

    def wait(self) -> None:
        """Wait until it takes tasks."""
        wait_until(lambda: " ready." in self.log.read_text(), START_SECONDS_MAX, self.log)

    def stop(self) -> None:
        """Let it finish its tasks and end."""
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(STOP_SECONDS_MAX)

    def kill(self) -> None:
        """Kill it with its children, as a machine that loses power."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()

    def kill_parent(self) -> None:
        """Kill the process that talks to the broker; its children go on for a while."""
        self.process.kill()
        self.process.wait()


def wait_until(
    condition: Callable[[], bool], seconds: float = 60.0, log: Path | None = None
) -> None:
    """Wait until a condition holds; the end of a log tells why it does not."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            tail = log.read_text()[-3000:] if log is not None else ""
            raise AssertionError(f"not within {seconds:g} s\n{tail}")
        time.sleep(0.05)
