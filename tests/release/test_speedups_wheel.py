"""Wheel of compiled modules: built of two small ones, installed beside their sources, and run."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.patient]

PROJECT = Path(__file__).parents[2]
BUILD_SECONDS_MAX = 280
MODULES = ("lockkeeper.message.errors", "lockkeeper.message.parts")
PARTS = '''"""Parts of bytes."""


def part(data: bytes, start: int, end: int) -> bytes:
    """Return a part."""
    return data[start:end]
'''
PROGRAM = """
from lockkeeper.message import parts
print(parts.__file__.rpartition(".")[2])
data = b"0123456789"
for start in range(-12, 13):
    for end in range(-12, 13):
        found = parts.part(data, start, end)
        assert found == data[start:end], (start, end, found)
"""

if shutil.which("cc") is None:
    pytest.skip("there is no C compiler", allow_module_level=True)


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project like this one, of which two modules are compiled."""
    place = tmp_path_factory.mktemp("compiled")
    for name in ("broker_image/lockkeeper", "speedups"):
        kept = shutil.ignore_patterns("build", "__pycache__", "*.egg-info")
        shutil.copytree(PROJECT / name, place / name, ignore=kept)
    shutil.copy(PROJECT / "pyproject.toml", place)
    (place / "broker_image/lockkeeper/message/parts.py").write_text(PARTS)
    (place / "speedups/modules.txt").write_text("\n".join((*MODULES, "")))
    return place


@pytest.fixture(scope="module")
def unpacked(sources: Path) -> Path:
    """What the wheel holds."""
    made = subprocess.run(
        [
            sys.executable, "-m", "build", "--wheel", "--no-isolation",
            "--outdir", sources / "dist", sources / "speedups",
        ],
        capture_output=True, text=True, timeout=BUILD_SECONDS_MAX, check=False,
    )  # fmt: skip
    assert made.returncode == 0, made.stdout + made.stderr
    (wheel,) = (sources / "dist").glob("lockkeeper_mq_speedups-*.whl")
    assert "-py3-none-" not in wheel.name
    with ZipFile(wheel) as opened:
        opened.extractall(sources / "unpacked")
    return sources / "unpacked"


def loaded(sources: Path, unpacked: Path, **more: str) -> str:
    """Return the kind of file that a process took the module from."""
    paths = (sources / "broker_image", unpacked)
    environment = {**os.environ, "LOCKKEEPER_PURE": "", **more}
    environment["PYTHONPATH"] = os.pathsep.join(map(str, paths))
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def test_modules_run_compiled_and_slice_as_python_does(sources: Path, unpacked: Path) -> None:
    assert loaded(sources, unpacked) == "so"


def test_they_run_from_their_sources_where_that_is_asked_for(sources: Path, unpacked: Path) -> None:
    assert loaded(sources, unpacked, LOCKKEEPER_PURE="1") == "py"


def test_changed_sources_are_what_runs(sources: Path, unpacked: Path) -> None:
    changed = sources / "broker_image/lockkeeper/message/parts.py"
    before = changed.read_text()
    try:
        changed.write_text(before + "# Changed.\n")
        assert loaded(sources, unpacked) == "py"
    finally:
        changed.write_text(before)
