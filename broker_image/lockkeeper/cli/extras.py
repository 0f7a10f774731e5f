"""Extras of a distribution: which one brings a package that is missing."""

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.metadata import Distribution

OURS = "lockkeeper-mq"
CLI = "cli"
_DISTRIBUTIONS = {"py4j": "pyspark", "yaml": "PyYAML"}
"""Distributions of our extras that bring packages of other names."""


_EXTRAS = {
    "send": CLI, "receive": CLI, "browse": CLI, "dlq": CLI, "": CLI,
    "analyze": "analytics", "sql": "analytics", "trace": "analytics", "keep": "analytics",
}  # fmt: skip
"""Extras of commands by name, "" for a command line without one; all others need the broker's."""


def extra_of(words: Sequence[str], is_in_cluster: bool) -> str:
    """Return the extra with all that a command line of ours needs; its *words* name the command."""
    command = next((word for word in words if not word.startswith("-")), "")
    return "broker" if is_in_cluster else _EXTRAS.get(command, "broker")


def missing(
    program: str, module: str, found: "Distribution | None" = None, whole: str | None = None
) -> str:
    """Return what to say when *program* needs *module*, which is not installed.

    The extra is one of *found*, or of our own distribution. Where that is what every command line
    needs, it is the *whole* that this one does: else the next try would name another extra.
    """
    from importlib.metadata import PackageNotFoundError, distribution

    package = module.partition(".")[0]
    text = f"`{program}` needs {package}, which is not installed"
    if found is None:
        try:
            found = distribution(OURS)
        except PackageNotFoundError:
            return text
    extra = extra_with(_DISTRIBUTIONS.get(package, package), found.requires or ())
    if extra == CLI and whole is not None:
        extra = whole
    return text if extra is None else f"{text}: pip install '{found.name}[{extra}]'"


def foreign(error: ModuleNotFoundError) -> str | None:
    """Return the module that is not installed; None when it is one of ours, which is a defect."""
    name = error.name or "lockkeeper"
    return None if name.startswith("lockkeeper") else name


def extra_with(package: str, requirements: Iterable[str]) -> str | None:
    """Return the extra that brings *package*, going by a distribution's requirements."""
    for requirement in requirements:
        name = re.match(r"[\w.-]+", requirement)
        extra = re.search(r"extra\s*==\s*[\"']([\w.-]+)", requirement)
        if name and extra and _normal(name[0]) == _normal(package):
            return extra[1]
    return None


def _normal(name: str) -> str:
    """Return a distribution's name, or a module's, as one is compared with the other."""
    return re.sub(r"[-_.]+", "-", name).lower()
