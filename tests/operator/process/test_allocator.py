"""Memory of hashed passwords: the operator gives it back."""

import subprocess
import sys

import pytest

PROGRAM = """
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from lockkeeper_api.passwords import hashed
from lockkeeper_operator import __main__, embedded

def resident():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:")) * 1024

async def run(options):
    with ThreadPoolExecutor(1) as hashing:
        hashing.submit(len, b"").result()
        before = resident()
        for number in range(5):
            hashing.submit(hashed, str(number), b"salt").result()
        print(resident() - before)
    return True

embedded.run = run
sys.argv[1:] = ["--image", "example/lockkeeper:1"]
__main__.main()
"""
BYTES_MAX = 4 << 20
"""A quarter of what one hash takes."""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_the_memory_of_hashed_passwords_goes_back_to_the_system() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, timeout=60
    )
    assert int(done.stdout) < BYTES_MAX
