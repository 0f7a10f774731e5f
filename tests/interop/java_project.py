"""Builds a small Maven project once, and tells how to run a class of it."""

import fcntl
import shutil
import subprocess
from pathlib import Path

BUILD_SECONDS_MAX = 400


def missing() -> str | None:
    """Return why no Java project can be built on this machine, or None."""
    absent = [tool for tool in ("javac", "mvn") if shutil.which(tool) is None]
    return f"not installed: {', '.join(absent)}" if absent else None


def build(project: Path, *shared: Path) -> str:
    """Build *project* unless it is up to date, and return its class path.

    *shared* are folders with sources that it takes from elsewhere. Of several processes that ask
    at once the first one builds. Raises RuntimeError with Maven's output when that fails.
    """
    with (project / "pom.xml").open() as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        if not _is_up_to_date(project, shared):
            _build(project)
    return f"{_classes(project)}:{_jars(project)}/*"


def _classes(project: Path) -> Path:
    return project / "target" / "classes"


def _jars(project: Path) -> Path:
    return project / "target" / "dependency"


def _is_up_to_date(project: Path, shared: tuple[Path, ...]) -> bool:
    sources = [project / "pom.xml", *project.rglob("src/**/*.java")]
    sources += [source for folder in shared for source in folder.rglob("*.java")]
    built = [path.stat().st_mtime for path in _classes(project).rglob("*.class")]
    if not built or not _jars(project).is_dir():
        return False
    return max(path.stat().st_mtime for path in sources) <= min(built)


def _build(project: Path) -> None:
    done = subprocess.run(
        ["mvn", "-q", "-B", "clean", "process-classes"],
        cwd=project,
        capture_output=True,
        text=True,
        timeout=BUILD_SECONDS_MAX,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"Maven could not build {project.name}:\n{done.stdout[-3000:]}")
