"""The examples of docs/client-streams.md run as they stand, against a broker."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[3] / "docs" / "client-streams.md"
PRINTED = (
    r"orders/interop/\d \d+\n100 spoons are stored\n",
    r"booked: 1\n",
    r"invoices paid two pounds of tea\n",
    r"\['check-in', 'boarding', 'departure'\]\n",
    r"20 degrees\n\['22 degrees'\]\n0 of 3\n",
    r".+@\d+#[0-9a-f]{12}\n",
)


@pytest.mark.parametrize("number", range(len(PRINTED)))
def test_examples_run(names: str, number: int) -> None:
    examples = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    assert len(examples) == len(PRINTED)
    code = examples[number].replace("127.0.0.1:9876", names)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert re.fullmatch(PRINTED[number], done.stdout), done.stdout
