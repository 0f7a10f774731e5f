"""Source distributions of kombu and Celery, which hold their integration tests."""

import subprocess
import sys
import tarfile
from importlib.metadata import version
from pathlib import Path

import pytest

KEPT = Path(__file__).parents[2] / "build" / "sources"
FETCH_SECONDS_MAX = 120


def source_of(name: str) -> Path:
    """Return the folder of the sources of an installed version; pip fetches them once."""
    wanted = f"{name}-{version(name)}"
    folder = KEPT / wanted
    if not folder.exists():
        KEPT.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        command += ["--no-binary", name, "--dest", str(KEPT), wanted.replace("-", "==", 1)]
        try:
            subprocess.run(command, check=True, capture_output=True, timeout=FETCH_SECONDS_MAX)
        except (subprocess.SubprocessError, OSError) as error:
            pytest.skip(f"no source distribution of {name}: {error}")
        with tarfile.open(KEPT / f"{wanted}.tar.gz") as archive:
            archive.extractall(KEPT, filter="data")
    return folder
