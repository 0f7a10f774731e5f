"""The JMS scenarios: a Java program that runs one after the other and reports on each."""

import json
import selectors
import subprocess
from pathlib import Path
from typing import Any

JAVA = ["java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
MAIN = "dev.lockkeeper.interop.Main"
SCENARIO_SECONDS_MAX = 120
REPORT_BYTES_MAX = 1 << 20


class JavaScenarios:
    """Runs scenarios in one Java process, which is started again after one that hangs."""

    def __init__(self, class_path: str, log: Path) -> None:
        """*log* is the file for what the program writes to its standard error."""
        self._command = [*JAVA, "-cp", class_path, MAIN]
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None

    def names(self) -> set[str]:
        """Return the names of the scenarios that the program has."""
        done = subprocess.run([*self._command, "list"], capture_output=True, text=True, check=True)
        return set(done.stdout.split())

    def run(self, scenario: str, url: str) -> dict[str, Any]:
        """Run a scenario against the broker at *url*; `ok` says whether it behaved."""
        process = self._running()
        assert process.stdin is not None
        process.stdin.write(f"{scenario} {url}\n".encode())
        process.stdin.flush()
        line = self._read_line(process)
        if line is None:
            self.stop()
            said = self._log.read_text(errors="replace")[-3000:]
            return {"ok": False, "error": f"no report of {scenario}:\n{said}"}
        report: dict[str, Any] = json.loads(line)
        return report

    def stop(self) -> None:
        """End the Java process."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def _running(self) -> "subprocess.Popen[bytes]":
        if self._process is None:
            with self._log.open("wb") as log:
                self._process = subprocess.Popen(
                    [*self._command, "serve"],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    bufsize=0,
                )
        return self._process

    def _read_line(self, process: "subprocess.Popen[bytes]") -> bytes | None:
        """Return the next line that the program prints; None when none comes in time."""
        assert process.stdout is not None
        with selectors.DefaultSelector() as readable:
            readable.register(process.stdout, selectors.EVENT_READ)
            if not readable.select(SCENARIO_SECONDS_MAX):
                return None
        return process.stdout.readline(REPORT_BYTES_MAX) or None
