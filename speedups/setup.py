"""The wheel of the compiled modules: mypyc compiles them from the sources beside, in one group.

A shared library holds them all, so that calls between them are direct. The module of each is a
small library of its own, which lies in `lockkeeper_speedups` and not beside the source.
"""

import os
import sys
import tomllib
from concurrent.futures import ThreadPoolExecutor
from contextlib import chdir
from pathlib import Path
from typing import Any

from mypyc.build import mypycify
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py

HERE = Path(__file__).resolve().parent
PROJECT = HERE.parent
SOURCES = "broker_image"
sys.path.insert(0, str(PROJECT / SOURCES))

from lockkeeper.speedups import MANIFEST, PACKAGE, fingerprint  # noqa: E402

MODULES = (HERE / "modules.txt").read_text("utf-8").split()


def source(module: str) -> str:
    """Return where the source of a module is, from the project's folder."""
    return f"{SOURCES}/{module.replace('.', '/')}.py"


def project_version() -> str:
    """Return the version of the distribution that these modules are part of."""
    text = (PROJECT / "pyproject.toml").read_text("utf-8")
    return str(tomllib.loads(text)["project"]["version"])


WRONG = "Py_ssize_t slice_len = endn - startn;"
RIGHT = "Py_ssize_t slice_len = endn < startn ? 0 : endn - startn;"


def mend_slices(runtime: Path) -> None:
    """Have bytes[start:end] be empty where *end* is before *start*: mypyc raises SystemError.

    Raises ValueError when mypyc's runtime is another one than this is made for.
    """
    text = runtime.read_text("utf-8")
    if RIGHT in text:
        return
    if text.count(WRONG) != 1:
        raise ValueError(f"{runtime}: this mypyc slices bytes in a way of its own: look at it")
    runtime.write_text(text.replace(WRONG, RIGHT), "utf-8")


class BuildWithManifest(build_py):  # type: ignore[misc]
    """Adds what was compiled from what."""

    def run(self) -> None:
        """Build the package, then say in it what it holds."""
        super().run()
        place = Path(self.build_lib, PACKAGE, MANIFEST)
        place.parent.mkdir(parents=True, exist_ok=True)
        compiled_from = fingerprint(MODULES, PROJECT / SOURCES)
        place.write_text("\n".join((VERSION, compiled_from, *MODULES, "")), "utf-8")


class BuildInParallel(build_ext):  # type: ignore[misc]
    """Compiles the files of the one large library side by side."""

    def build_extensions(self) -> None:
        """Build, a file a processor."""
        compile_all = self.compiler.compile

        def compile_each(sources: list[str], *places: Any, **options: Any) -> list[str]:
            with ThreadPoolExecutor(os.cpu_count()) as pool:
                made = pool.map(lambda each: compile_all([each], *places, **options), sources)
                return [each for several in made for each in several]

        self.compiler.compile = compile_each
        super().build_extensions()


def compiled() -> list[Extension]:
    """Return the shared library, and a library for each module."""
    options = ["--config-file", str(HERE / "mypy.ini"), *map(source, MODULES)]
    # Tracebacks name the sources as they are named here.
    with chdir(PROJECT):
        library, *shims = mypycify(
            options,
            opt_level="2",
            debug_level="0",
            multi_file=True,
            group_name=PACKAGE,
            target_dir=str(HERE / "build" / "c"),
        )
    mend_slices(HERE / "build" / "c" / "bytes_ops.c")
    for shim in shims:
        shim.name = shim.name.replace("lockkeeper.", f"{PACKAGE}.", 1)
    for each in (library, *shims):
        # setuptools takes no others.
        each.sources = [os.path.relpath(name, HERE) for name in each.sources]
        each.depends = [os.path.relpath(name, HERE) for name in each.depends]
    return [library, *shims]


VERSION = project_version()

setup(
    version=VERSION,
    packages=[PACKAGE],
    # Other commands only ask what there is.
    ext_modules=compiled() if {"bdist_wheel", "build_ext"} & set(sys.argv) else [],
    cmdclass={"build_ext": BuildInParallel, "build_py": BuildWithManifest},
)
