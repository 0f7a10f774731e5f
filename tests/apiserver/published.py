"""Definitions of others' resources, as their makers publish them."""

import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "e2e" / "cluster" / "published.sh"


def published(name: str) -> Path:
    """Return the file of a definition; the test is skipped where it cannot be had."""
    done = subprocess.run([str(SCRIPT), name], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(done.stderr.strip() or f"{SCRIPT.name} {name} failed")
    return Path(done.stdout.strip())
