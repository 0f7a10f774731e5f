"""Look for planted bugs: each patch in `planted/` on a copy, until a seed fails.

`planted.py [NAME …] [--seeds N]` prints how soon each is found: by which seed from 0 on, and in
how many seconds of processor time, all seeds up to it together.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
TOP = HERE.parent.parent
SOURCES = ("broker_image", "crds", "tests")


def names() -> list[str]:
    """Return the names of all patches."""
    return sorted(path.stem for path in (HERE / "planted").rglob("*.patch"))


def path_of(name: str) -> Path:
    """Return where a patch is: those of another world than a pair are in a folder of its name."""
    return next((HERE / "planted").rglob(f"{name}.patch"))


def look_for(name: str, seeds: int, jobs: int) -> str:
    """Return which seed finds the bug, what it says and how long that took."""
    with tempfile.TemporaryDirectory(prefix="planted-") as place:
        for source in SOURCES:
            shutil.copytree(
                TOP / source, Path(place) / source, ignore=shutil.ignore_patterns("__pycache__")
            )
        patch = path_of(name)
        subprocess.run(["patch", "-p1", "--quiet"], cwd=place, input=patch.read_bytes(), check=True)
        folder = patch.parent.name
        world = [] if folder == "planted" else [f"--{folder}"]
        path = os.pathsep.join(str(Path(place) / each) for each in SOURCES[:2])
        done = subprocess.run(
            [
                sys.executable,
                str(Path(place) / "tests/simulation/run.py"),
                *("--seeds", f"0-{seeds - 1}", "--jobs", str(jobs), "--stop", *world),
            ],
            env=os.environ | {"PYTHONPATH": path},
            capture_output=True,
            text=True,
            check=False,
        )
    found = [line for line in done.stdout.splitlines() if line.startswith("seed ")]
    if not found:
        return f"{name}: not found in {seeds} seeds"
    said = done.stdout.splitlines()
    first = next((line.strip() for line in said[1:] if not line.startswith("  fault")), "")
    seconds = float(said[-1].partition(" min, ")[2].split()[0])
    return f"{name}: {found[0].split(' at ')[0]}, {seconds:.0f} s: {first[:150]}"


def main() -> int:
    """See the module's text."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--seeds", type=int, default=10_000)
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    missed = 0
    for name in arguments.names or names():
        told = look_for(name, arguments.seeds, arguments.jobs)
        missed += "not found" in told
        print(told, flush=True)
    return bool(missed)


if __name__ == "__main__":
    sys.exit(main())
