"""Compiled modules in place of their sources, where `lockkeeper-mq-speedups` is installed.

They are used all together or not at all, and only when they were compiled from the very sources
that lie here: whoever changes a source runs what it says. LOCKKEEPER_PURE=1 turns them off.
"""

import os
import sys
from collections.abc import Sequence
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader, ModuleSpec
from importlib.util import find_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

PACKAGE = "lockkeeper_speedups"
DISTRIBUTION = "lockkeeper-mq-speedups"
MANIFEST = "manifest.txt"
PURE = "LOCKKEEPER_PURE"
SOURCES = Path(__file__).parents[1]


class Speedups(NamedTuple):
    """Choice between compiled modules and sources: without a `finder`, `reason` says why not.

    Reasons are for people: in the log of a broker, and behind its version.
    """

    finder: "CompiledFinder | None"
    reason: str = ""
    is_installed: bool = True

    @property
    def is_amiss(self) -> bool:
        """Tell whether somebody installed compiled modules that cannot be used."""
        return self.finder is None and self.is_installed and not os.environ.get(PURE)

    def __str__(self) -> str:
        """Return what runs, and why it is not compiled."""
        return "compiled" if self.finder else f"pure Python: {self.reason}"


class CompiledFinder:
    """Finds the compiled modules under the names of their sources."""

    def __init__(self, folder: Path, suffix: str, modules: Sequence[str]) -> None:
        self.places = {module: _place(folder, module, suffix) for module in modules}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return where a module of ours is, if it is compiled."""
        place = self.places.get(fullname)
        if place is None:
            return None
        loader = ExtensionFileLoader(fullname, str(place))
        return spec_from_file_location(fullname, place, loader=loader)


def _place(folder: Path, module: str, suffix: str) -> Path:
    """Return where the compiled module lies in the folder of them all."""
    *rooms, name = module.split(".")[1:]
    return folder.joinpath(*rooms, name + suffix)


def fingerprint(modules: Sequence[str], sources: Path) -> str:
    """Return the SHA-256 of the names and sources of modules. Raises OSError without one."""
    # Most processes have nothing to compare, and start without.
    import hashlib

    digest = hashlib.sha256()
    for module in modules:
        digest.update(f"{module}\n".encode())
        digest.update((sources / f"{module.replace('.', '/')}.py").read_bytes())
    return digest.hexdigest()


def look_up(folder: Path | None, sources: Path = SOURCES) -> Speedups:
    """Tell whether what is compiled in *folder* may stand for the *sources*."""
    if os.environ.get(PURE):
        return Speedups(None, f"{PURE} is set", folder is not None)
    if folder is None:
        return Speedups(None, f"{DISTRIBUTION} is not installed", is_installed=False)
    try:
        version, compiled_from, *modules = (folder / MANIFEST).read_text("utf-8").split()
        is_same = compiled_from == fingerprint(modules, sources)
    except (OSError, ValueError) as error:
        return Speedups(None, f"{DISTRIBUTION} cannot be used: {error}")
    if not is_same:
        return Speedups(None, f"{DISTRIBUTION} {version} was compiled from other sources")
    for suffix in EXTENSION_SUFFIXES:
        if _place(folder, modules[0], suffix).exists():
            return Speedups(CompiledFinder(folder, suffix, modules))
    return Speedups(None, f"{DISTRIBUTION} {version} was compiled for another Python")


def _installed() -> Path | None:
    """Return the folder of the compiled modules."""
    spec = find_spec(PACKAGE)
    return Path(spec.origin).parent if spec is not None and spec.origin is not None else None


running = look_up(_installed())
"""What this process runs, from its first import of ours to its end."""


def install() -> None:
    """Have modules of ours that are imported from now on be the compiled ones, if there are any."""
    if running.finder is not None and running.finder not in sys.meta_path:
        sys.meta_path.insert(0, running.finder)
