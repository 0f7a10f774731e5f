"""Builds a small Maven project once, and tells how to run a class of it."""

import shutil
import subprocess
from pathlib import Path

BUILD_SECONDS_MAX = 400


def missing() -> str | None:
    """Return why no Java project can be built on this machine, or None."""
    absent = [tool for tool in ("javac", "mvn") if shutil.which(tool) is None]
    return f"not installed: {', '.join(absent)}" if absent else None


def build(project: Path) -> str:
    """Build *project* unless it is up to date, and return its class path.

    Raises RuntimeError with Maven's output when that fails.
    """
    classes, jars = project / "target" / "classes", project / "target" / "dependency"
    sources = [project / "pom.xml", *project.rglob("src/**/*.java")]
    built = [path.stat().st_mtime for path in classes.rglob("*.class")]
    if not built or not jars.is_dir() or max(p.stat().st_mtime for p in sources) > min(built):
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
    return f"{classes}:{jars}/*"
