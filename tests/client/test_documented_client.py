"""The examples of docs/client.md run as they stand, against a broker."""

import re
import subprocess
import sys
from pathlib import Path

import brokers
import pytest

PAGE = Path(__file__).parents[2] / "docs" / "client.md"
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)


@pytest.mark.parametrize("number", range(5))
def test_examples_run(broker: brokers.RunningBroker, number: int) -> None:
    assert len(EXAMPLES) == 5
    example = EXAMPLES[number]
    code = example.replace("tcp://127.0.0.1:61616", broker.url)
    assert code != example
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")
    prints = [line for line in example.splitlines() if "print(" in line]
    assert len(done.stdout.splitlines()) == len(prints)
    if "two pounds" in example:
        assert done.stdout.startswith("two pounds of tea")
