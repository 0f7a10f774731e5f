"""What the command line's tests share: real brokers on free ports, and commands run in place."""

import io
import json
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from lockkeeper.cli.main import main

COMMAND = Path(sys.executable).with_name("lockkeeper")
START_SECONDS_MAX = 30


@dataclass(frozen=True)
class Place:
    """Where a broker is."""

    url: str
    admin: str
    data: Path


def wait_until(
    condition: Callable[[], bool], process: "subprocess.Popen[Any] | None" = None
) -> None:
    """Wait for *condition*, as long as *process*, if there is one, runs."""
    deadline = time.monotonic() + START_SECONDS_MAX
    while not condition():
        if process is not None:
            assert process.poll() is None, f"ended with code {process.returncode}"
        assert time.monotonic() < deadline
        time.sleep(0.05)


def role_at(admin: str) -> str:
    """Return the role that an admin address tells, or nothing."""
    try:
        with urllib.request.urlopen(f"{admin}/api/v1/status", timeout=1) as answer:
            return str(json.load(answer)["role"])
    except (OSError, ValueError):
        return ""


@dataclass
class Outcome:
    """What a command that has ended left behind."""

    code: int
    out: str
    err: str

    def json(self) -> Any:
        return json.loads(self.out)

    def json_lines(self) -> list[Any]:
        return [json.loads(line) for line in self.out.splitlines()]


@dataclass
class CommandLine:
    """Runs commands in this process: as fast as a function call, with real brokers behind."""

    capture: "pytest.CaptureFixture[str]"
    patch: pytest.MonkeyPatch

    def __call__(self, *arguments: str, stdin: bytes = b"") -> Outcome:
        self.patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        self.capture.readouterr()
        code = main(list(arguments))
        captured = self.capture.readouterr()
        assert "Traceback" not in captured.err
        return Outcome(code, captured.out, captured.err)

    def done(self, *arguments: str, stdin: bytes = b"") -> Outcome:
        """Run a command that must succeed and say nothing on standard error."""
        outcome = self(*arguments, stdin=stdin)
        assert (outcome.code, outcome.err) == (0, ""), outcome.err
        return outcome


def run_broker(
    directory: Path, listen: str, admin: str, *options: str
) -> "subprocess.Popen[bytes]":
    """Start `lockkeeper broker` with its journal in *directory*; its log lies beside that."""
    command: Sequence[str] = ["broker", "--data", str(directory), "--listen", listen]
    with directory.with_suffix(".log").open("ab") as log:
        return subprocess.Popen(
            [COMMAND, *command, "--admin", admin, *options], stdout=log, stderr=subprocess.STDOUT
        )


def stop(process: "subprocess.Popen[Any]") -> None:
    """Stop a process as Ctrl-C would, if it still runs."""
    if process.poll() is None:
        process.terminate()
        process.wait(20)
