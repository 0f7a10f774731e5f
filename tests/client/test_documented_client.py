"""The examples of the client's pages run as they stand, against a broker."""

import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import brokers
import pytest

DOCS = Path(__file__).parents[2] / "docs"
COUNTS = {"client.md": 9, "listeners.md": 3}
NUMBERED = [(page, number) for page, count in COUNTS.items() for number in range(count)]


def examples(page: str) -> list[str]:
    text = (DOCS / page).read_text("utf-8")
    return re.findall(r"```python\n(.*?)```", text, re.DOTALL)


def printed(code: str, lines: int) -> list[str]:
    """Return what a program prints; one that serves is told to end after so many lines."""
    process = subprocess.Popen(
        [sys.executable, "-u", "-W", "error", "-c", code],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    timer = threading.Timer(60, process.kill)
    timer.start()
    try:
        assert process.stdout is not None
        found = [process.stdout.readline().rstrip("\n") for _ in range(lines)]
        if "run(" in code and "asyncio.run(" not in code:
            process.send_signal(signal.SIGTERM)
        rest, errors = process.communicate(timeout=60)
    finally:
        timer.cancel()
        process.kill()
    assert (process.returncode, errors, rest) == (0, "", "")
    return found


@pytest.mark.parametrize(("page", "number"), NUMBERED)
def test_examples_run(broker: brokers.RunningBroker, page: str, number: int) -> None:
    found = examples(page)
    assert len(found) == COUNTS[page]
    example = found[number]
    code = example.replace("tcp://127.0.0.1:61616", broker.url)
    assert code != example
    lines = printed(code, sum("print(" in line for line in example.splitlines()))
    assert all(lines)
    if 'two pounds of tea", {' in example:
        assert lines[0].startswith("two pounds of tea")
    if "orders.>" in example:
        assert lines == ["2 tea"]
